"""A collective that one of its ranks left, on nodes of a real Ray cluster."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from ray_cluster import marked
from yards import until

# What gloo does, by the means of the standard library: each step is a number from every rank,
# added up by the first. After a few steps the last rank stops taking part.
ADDS_UP = """
import os, socket, time
from runyard import report

rank = int(os.environ["RANK"])
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

def joined():
    if rank == 0:
        with socket.create_server(place) as listening:
            return listening.accept()[0]
    while True:
        try:
            return socket.create_connection(place)
        except OSError:
            time.sleep(0.05)

def left_the_collective():
    while True:
        time.sleep(0.2)

def waits_in_the_collective(peer):
    peer.sendall(bytes([rank + 1]))
    return rank + 1 + peer.recv(1)[0]

peer = joined()
for step in range(100):
    if rank == 1 and step == 6:
        left_the_collective()
    report.report(step=step, total=100, loss=float(waits_in_the_collective(peer)))
    time.sleep(0.1)
"""
STOPS = {
    "RUNYARD_MONITORING_INTERVAL": "0.3",
    "RUNYARD_STALL_MIN_S": "6",  # no pause of a busy machine
    "RUNYARD_STALL_ACTION": "stop",
}
WHERE = {0: "waits_in_the_collective", 1: "left_the_collective"}


def submit(yard):
    shape = {"nodes": 2, "placement": "spread"}
    return yard.submit([sys.executable, "-c", ADDS_UP], distributed=shape, grace_s=1)


@pytest.mark.slow
def test_stacks_are_fetched_by_the_next_bridge(make_ray_yard):
    """R34: the bridge is killed when the stall is about to be seen; its evidence is whole."""
    yard = make_ray_yard(env=STOPS).start()
    ref = submit(yard)
    until(lambda: (yard.job(ref)["progress"] or 0) >= 5, 90, lambda: yard.job(ref))
    os.kill(yard.bridge(), signal.SIGKILL)
    yard.wait(ref, "failed", seconds=120)
    [alert] = yard.ask(f"/alerts?job={ref}&code=stalled_training")
    assert all(function in alert["evidence"]["stacks"] for function in WHERE.values())


def test_gloo_like_hang_stall_rule(make_ray_yard):
    """R34, R50: the stack of every rank is fetched from its node before the stall rule ends the
    attempt, and nothing of it is left."""
    yard = make_ray_yard(env=STOPS).start()
    ref = submit(yard)
    job = yard.wait(ref, "failed", seconds=120)
    assert job["diagnosis"]["category"] == "comm_hang"
    [attempt] = yard.attempts(ref)
    assert len({part["node"] for part in attempt["slices"]}) == 2
    [alert] = yard.ask(f"/alerts?job={ref}&code=stalled_training")
    told = alert["evidence"]
    assert [(one["rank"], one["by"] != "proc") for one in told["processes"]] == [
        (0, True),
        (1, True),
    ], told["processes"]
    for rank, function in WHERE.items():
        [name] = [name for name in told["files"] if name.startswith(f"rank-{rank}-pid-")]
        path = yard.data / "attempts" / f"{ref}.1" / "evidence" / told["evidence"] / name
        assert function in path.read_text()
        assert function in told["stacks"]
    assert not marked(f"{ref}.1")
