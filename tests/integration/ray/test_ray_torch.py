"""Real torch over gloo on two nodes of a Ray cluster: `make test-frameworks`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import runyard
from ray_yard import kill_a_node_of
from yards import until

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parents[2] / "compat" / "frameworks" / "ddp_training.py"
PYTHON = os.environ.get("FRAMEWORKS_PYTHON") or shutil.which("python3") or sys.executable


def train(yard, launcher="env", **fields):
    env = {
        "PYTHONPATH": str(Path(runyard.__file__).parents[1]),
        "GLOO_SOCKET_IFNAME": "lo",
        **fields.pop("env_vars", {}),
    }
    shape = {"nodes": 2, "placement": "spread", "launcher": launcher}
    return yard.submit([PYTHON, str(PROGRAM)], distributed=shape, env_vars=env, **fields)


def final_loss(yard, ref):
    [line] = [line for line in yard.logs(ref) if "final loss" in line]
    return float(line.split()[-1])


def test_torch_gloo_rank_death(make_ray_yard):
    """R30, R50: a rank on one of two nodes dies; the next attempt goes on from the last good
    checkpoint and comes to the loss of a training nobody disturbed, whichever way it is
    launched."""
    yard = make_ray_yard(env={"RUNYARD_GANG_GRACE_S": "20"}).start()
    plain = train(yard)
    yard.wait(plain, "completed", seconds=300)
    broken = train(yard, env_vars={"BREAK": "1:25"}, max_retries=2)
    yard.wait(broken, "completed", seconds=300)
    first, second = yard.attempts(broken)
    assert first["end"] == "failed"
    assert any("begins at step 20" in line for line in yard.logs(broken, attempt=2))
    assert len({part["node"] for part in second["slices"]}) == 2
    assert final_loss(yard, broken) == pytest.approx(final_loss(yard, plain), rel=1e-4)


def test_torch_gloo_hang_stall_rule(make_ray_yard):
    """R34, R50: a rank stops taking part, the other waits inside gloo. The stacks of both come
    from their nodes; then the attempt ends, and the next comes to the end of the training."""
    stops = {
        "RUNYARD_MONITORING_INTERVAL": "0.5",
        "RUNYARD_STALL_MIN_S": "15",
        "RUNYARD_STALL_ACTION": "stop",
    }
    yard = make_ray_yard(env=stops).start()
    env = {"LEAVE": "1:25", "SECONDS_PER_STEP": "0.1"}
    ref = train(yard, env_vars=env, max_retries=2, grace_s=2)
    yard.wait(ref, "completed", seconds=400)
    assert any("begins at step 20" in line for line in yard.logs(ref, attempt=2))
    [alert] = yard.ask(f"/alerts?job={ref}&code=stalled_training")
    told = alert["evidence"]
    folder = yard.data / "attempts" / f"{ref}.1" / "evidence" / told["evidence"]
    waits, left = ("".join(p.read_text() for p in folder.glob(f"rank-{n}-*.txt")) for n in (0, 1))
    assert "backward" in waits or "all_reduce" in waits
    assert "left_the_collective" in left


def test_torchrun_reform(make_ray_yard):
    """R50: torchrun on each node meets at the port of the first, also in a second attempt; the
    log of a rank is that of its node, whatever the addresses of the nodes are."""
    yard = make_ray_yard(env={"RUNYARD_GANG_GRACE_S": "20"}).start()
    ref = train(yard, "torchrun", env_vars={"BREAK": "1:25"}, max_retries=2)
    yard.wait(ref, "completed", seconds=400)
    assert len(yard.attempts(ref)) == 2
    for rank in (0, 1):
        begun = f"rank {rank} of 2 begins at step 20"
        assert begun in yard.logs(ref, attempt=2, rank=rank)
    assert final_loss(yard, ref) >= 0  # told by rank 0, in the log that is shown first


def test_torch_gloo_loss_of_a_node(make_ray_yard):
    """R50: a node dies in the middle of a training on two; it goes on elsewhere from its last
    good checkpoint, and comes to the same loss."""
    yard = make_ray_yard(env={"RUNYARD_GANG_GRACE_S": "5"}).start()
    cluster = yard.cluster
    slow = {"STEPS": "60", "SECONDS_PER_STEP": "0.3"}
    whole = {"gpu_count": 4, "max_retries": 2}  # all of a node: both that are left are needed
    plain = train(yard, env_vars=slow | {"SECONDS_PER_STEP": "0"}, **whole)
    yard.wait(plain, "completed", seconds=300)
    ref = train(yard, env_vars=slow, **whole)
    until(lambda: len(yard.ask(f"/jobs/{ref}/checkpoints")) >= 2, 120)
    victim = kill_a_node_of(yard, ref)
    try:
        yard.wait(ref, "completed", seconds=400)
        attempts = yard.attempts(ref)
        assert [one["end"] for one in attempts] == ["lost", "completed"]
        assert attempts[0]["ports"] != attempts[1]["ports"]
        assert victim not in {part["address"] for part in attempts[-1]["slices"]}
        lines = yard.logs(ref, attempt=attempts[-1]["number"])
        [begun] = [int(line.split()[-1]) for line in lines if "begins at step" in line]
        assert 20 <= begun < 60
        assert final_loss(yard, ref) == pytest.approx(final_loss(yard, plain), rel=1e-4)
    finally:
        cluster.end_node(victim)
        cluster.add_node()
