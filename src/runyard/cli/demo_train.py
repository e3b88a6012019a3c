"""A small neural network that learns two spirals, with the standard library only. It is a job like
any other: it prints its progress, and saves itself and leaves when it is asked to stop."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import sys
import time
from pathlib import Path

POINTS = 120
HIDDEN = 16
EPOCHS = 60


class Network:
    """Two inputs, one hidden layer of tanh, one output: the chance of the second spiral."""

    def __init__(self, chance: random.Random) -> None:
        self.first = [[chance.gauss(0, 1.5) for _ in range(3)] for _ in range(HIDDEN)]
        self.second = [chance.gauss(0, 0.3) for _ in range(HIDDEN + 1)]

    def forward(self, x: float, y: float) -> tuple[list[float], float]:
        hidden = [math.tanh(a * x + b * y + c) for a, b, c in self.first]
        total = sum(w * h for w, h in zip(self.second, hidden, strict=False)) + self.second[-1]
        return hidden, 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    def learn(self, x: float, y: float, target: float, rate: float) -> float:
        """One step downhill on one point; its loss before the step."""
        hidden, guess = self.forward(x, y)
        slope = guess - target
        for place, value in enumerate(hidden):
            inner = slope * self.second[place] * (1 - value * value)
            self.second[place] -= rate * slope * value
            weights = self.first[place]
            weights[0] -= rate * inner * x
            weights[1] -= rate * inner * y
            weights[2] -= rate * inner
        self.second[-1] -= rate * slope
        chance = guess if target else 1 - guess
        return -math.log(max(chance, 1e-12))


def spirals(chance: random.Random) -> list[tuple[float, float, float]]:
    points = []
    for number in range(POINTS):
        turn = number / POINTS * 2.2 * math.pi
        for target in (0.0, 1.0):
            angle = turn + target * math.pi
            reach = 0.3 + turn / 4
            points.append(
                (
                    reach * math.cos(angle) + chance.gauss(0, 0.05),
                    reach * math.sin(angle) + chance.gauss(0, 0.05),
                    target,
                )
            )
    return points


def train(seconds: float) -> int:
    chance = random.Random(7)
    points, network = spirals(chance), Network(chance)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    print(f"two spirals, {len(points)} points, {HIDDEN} hidden units, {EPOCHS} epochs", flush=True)
    began = time.monotonic()
    loss = accuracy = 0.0
    for epoch in range(1, EPOCHS + 1):
        until = began + seconds * epoch / EPOCHS
        rate = 0.12 * (1 - 0.8 * epoch / EPOCHS)
        loss = one_epoch(points, network, chance, rate, until, stopping)
        right = sum((network.forward(x, y)[1] > 0.5) == (t > 0.5) for x, y, t in points)
        accuracy = right / len(points)
        print(
            f"epoch {epoch}/{EPOCHS} loss={loss:.4f} accuracy={accuracy:.3f} lr={rate:.4f}",
            flush=True,
        )
        report(epoch, loss, accuracy)
        if stopping:
            save(network, epoch, loss)
            print("asked to stop: the model is saved, leaving", flush=True)
            return 128 + signal.SIGTERM
    save(network, EPOCHS, loss)
    print(f"done: loss {loss:.4f}, accuracy {accuracy:.3f}", flush=True)
    return 0


def one_epoch(
    points: list[tuple[float, float, float]],
    network: Network,
    chance: random.Random,
    rate: float,
    until: float,
    stopping: list[int],
) -> float:
    """At least one pass over all points, and on until its share of the time is used."""
    loss = 0.0
    while True:
        chance.shuffle(points)
        loss = sum(network.learn(x, y, target, rate) for x, y, target in points) / len(points)
        if stopping or time.monotonic() >= until:
            return loss
        time.sleep(0.02)  # a guest on a machine that may be busy


def report(epoch: int, loss: float, accuracy: float) -> None:
    path = os.environ.get("RUNYARD_METRICS_FILE")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            values = {"step": epoch, "loss": loss, "accuracy": accuracy, "time": time.time()}
            file.write(json.dumps(values) + "\n")


def save(network: Network, epoch: int, loss: float) -> None:
    folder = os.environ.get("RUNYARD_OUTPUT_DIR")
    if folder and os.path.isdir(folder):
        weights = {"first": network.first, "second": network.second, "epoch": epoch, "loss": loss}
        Path(folder, "model.json").write_text(json.dumps(weights), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    return train(parser.parse_args().seconds)


if __name__ == "__main__":
    sys.exit(main())
