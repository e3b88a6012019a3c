"""What hangs on a node without being dead: a cancel still ends, and nothing is left."""

from __future__ import annotations

import os
import signal
import time

import pytest

from ray_yard import holding
from runyard.supervisor import process_table
from yards import Truth, alive, until


def chain(actor: int) -> dict[str, int]:
    """What stands below an actor, by name."""
    found = {"actor": actor}
    for above, below in (("actor", "shim"), ("shim", "keeper"), ("keeper", "supervisor")):
        [found[below]] = process_table.children(found[above])
    return found


@pytest.fixture
def held(ray_yard, tmp_path):
    """A job that holds on to a tree which ignores SIGTERM: (job, truth, what watches over it)."""
    truth = Truth(tmp_path / "truth")
    ref = ray_yard.submit(holding(truth), gpu_count=1, grace_s=1)
    until(lambda: "up" in ray_yard.logs(ref), 120)
    pids = chain(ray_yard.cluster.actors()[f"job_{ref}_a1_n0"])
    try:
        yield ref, truth, pids
    finally:
        for pid in pids.values():
            if alive(pid):
                os.kill(pid, signal.SIGCONT)
        truth.close()


@pytest.mark.parametrize("whom", ["actor", "shim", "keeper", "supervisor"])
def test_a_cancel_has_a_deadline(ray_yard, held, whom):
    """R41, R51: it is stopped, and hears nothing. Its actor loses its life for it, and another one
    sees to the end."""
    ref, truth, pids = held
    os.kill(pids[whom], signal.SIGSTOP)
    began = time.monotonic()
    ray_yard.cancel(ref, wait=0)
    ray_yard.wait(ref, "cancelled", seconds=120)
    print(f"cancelled after {time.monotonic() - began:.1f} s with its {whom} stopped")
    assert not truth.held()
    until(lambda: not any(map(alive, pids.values())), 60, lambda: pids)
    receipt = ray_yard.ask(f"/jobs/{ref}/receipt")
    assert receipt["requested_by"] is not None
    assert receipt["processes_ended"] >= 1


def test_an_end_is_told_though_what_wrote_it_hangs(ray_yard, tmp_path):
    """The shim is stopped while the job ends by itself, with its log and its own exit code."""
    go = tmp_path / "go"
    script = f"echo up; while [ ! -e {go} ]; do sleep 0.05; done; echo over; exit 5"
    ref = ray_yard.submit(script, max_retries=0)
    until(lambda: "up" in ray_yard.logs(ref), 120)
    pids = chain(ray_yard.cluster.actors()[f"job_{ref}_a1_n0"])
    os.kill(pids["shim"], signal.SIGSTOP)
    go.touch()
    job = ray_yard.wait(ref, "failed", seconds=120)
    assert job["reason"]["params"]["code"] == 5
    assert ray_yard.logs(ref) == ["up", "over"]
    until(lambda: not any(map(alive, pids.values())), 60, lambda: pids)
