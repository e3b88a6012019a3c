"""A training over several nodes with nothing but sockets: gradients are summed by rank 0, which
saves every few steps. The same numbers however often it is broken off and gone on with. With the
name of a file the last rank stands still in the middle until there is one, and the others wait."""

import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

from runyard import report

STEPS, SAVE_EVERY = int(sys.argv[1]), int(sys.argv[2])
GO = Path(sys.argv[3]) if len(sys.argv) > 3 else None
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PLACE = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
TRUE, RATE, SAMPLES = (1.5, -2.0, 0.25), 0.1, 8
NUMBERS = struct.Struct(f"!{len(TRUE) + 1}d")  # a gradient and a loss


def meet():
    """The connections to all others, by rank, at rank 0; the one to rank 0 at the others."""
    if RANK == 0:
        peers = {}
        with socket.create_server(PLACE) as server:
            while len(peers) < WORLD - 1:
                peer, _ = server.accept()
                peers[struct.unpack("!i", read(peer, 4))[0]] = peer
        return [peers[rank] for rank in sorted(peers)]
    while True:
        try:
            peer = socket.create_connection(PLACE, timeout=60)
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            peer.sendall(struct.pack("!i", RANK))
            return [peer]


def read(peer, length):
    data = b""
    while len(data) < length:
        part = peer.recv(length - len(data))
        if not part:
            raise ConnectionError("a peer is gone")
        data += part
    return data


def summed(peers, numbers):
    """In the order of ranks, so that not even the last bit depends on who came first."""
    if RANK == 0:
        for peer in peers:
            others = NUMBERS.unpack(read(peer, NUMBERS.size))
            numbers = [mine + other for mine, other in zip(numbers, others, strict=True)]
        for peer in peers:
            peer.sendall(NUMBERS.pack(*numbers))
        return numbers
    peers[0].sendall(NUMBERS.pack(*numbers))
    return NUMBERS.unpack(read(peers[0], NUMBERS.size))


def gradient_and_loss(weights, step):
    """Of this rank's samples, which are the same in every attempt."""
    total = [0.0] * (len(TRUE) + 1)
    for sample in range(SAMPLES):
        seed = (step * WORLD + RANK) * SAMPLES + sample
        inputs = [((seed * (2 * axis + 7919)) % 1000) / 500 - 1 for axis in range(len(TRUE))]
        wrong = sum((w - t) * x for w, t, x in zip(weights, TRUE, inputs, strict=True))
        for axis, value in enumerate(inputs):
            total[axis] += 2 * wrong * value
        total[-1] += wrong * wrong
    return [value / (SAMPLES * WORLD) for value in total]


def main():
    kept = {"step": 0, "weights": [0.0] * len(TRUE)}
    if path := os.environ.get("RUNYARD_RESUME_FROM"):
        kept = json.loads(Path(path).read_text())
    begun, weights = kept["step"], kept["weights"]
    peers = meet()
    print(f"rank {RANK} of {WORLD} begins at step {begun}", flush=True)
    loss = 0.0
    for step in range(begun, STEPS):
        if GO is not None and RANK == WORLD - 1 and step >= STEPS // 2:
            while not GO.exists():
                time.sleep(0.05)
        *gradient, loss = summed(peers, gradient_and_loss(weights, step))
        weights = [w - RATE * g for w, g in zip(weights, gradient, strict=True)]
        report.report(step=step + 1, total=STEPS, loss=loss)
        if RANK == 0 and (step + 1) % SAVE_EVERY == 0:
            state = json.dumps({"step": step + 1, "weights": weights})
            folder = os.environ["RUNYARD_CHECKPOINT_DIR"]
            report.save_checkpoint(
                lambda path, state=state: Path(path).write_text(state),
                f"{folder}/step_{step + 1}.json",
                step + 1,
            )
    print(f"final loss {loss!r}", flush=True)


if __name__ == "__main__":
    main()
