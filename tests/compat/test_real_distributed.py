"""Real torch over gloo as distributed jobs: `make test-frameworks` with a Python that has it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import runyard
from yards import RunningYard, until

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).parent / "frameworks" / "ddp_training.py"
PYTHON = os.environ.get("FRAMEWORKS_PYTHON") or shutil.which("python3") or sys.executable
LAUNCHERS = ("env", "torchrun")


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    settings = {"RUNYARD_GANG_GRACE_S": "20"}
    made = RunningYard(tmp_path_factory.mktemp("ddp"), env=settings, max_concurrent=4).start()
    yield made
    made.stop()


def train(yard, launcher, **fields):
    env = {"PYTHONPATH": str(Path(runyard.__file__).parents[1]), **fields.pop("env_vars", {})}
    shape = {"procs_per_node": 2, "launcher": launcher}
    return yard.submit([PYTHON, str(PROGRAM)], distributed=shape, env_vars=env, **fields)


def final_loss(yard, ref):
    [line] = [line for line in yard.logs(ref) if "final loss" in line]
    return float(line.split()[-1])


@pytest.fixture(scope="module")
def undisturbed(yard):
    ref = train(yard, "env")
    yard.wait(ref, "completed", seconds=300)
    return final_loss(yard, ref)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_ranks_train_one_model(yard, launcher, undisturbed):
    """R30: both launchers lead to the same numbers; each rank has metrics of its own."""
    ref = train(yard, launcher)
    yard.wait(ref, "completed", seconds=300)
    assert final_loss(yard, ref) == pytest.approx(undisturbed, rel=1e-4)

    def series():
        found = yard.ask(f"/jobs/{ref}/metrics")["series"]
        return found if "loss.rank1" in found and len(found["loss"]["values"]) == 40 else None

    found = until(series, 30)
    assert found["loss.rank1"]["values"][-1] == pytest.approx(found["loss"]["values"][-1])
    checkpoints = [one["step"] for one in yard.ask(f"/jobs/{ref}/checkpoints")]
    assert checkpoints == [10, 20, 30, 40]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_torch_gloo_rank_death(yard, launcher, undisturbed):
    """R30, R51: a rank dies; it is named, the next attempt goes on from the last good checkpoint
    and comes to the same loss."""
    ref = train(yard, launcher, env_vars={"BREAK": "1:25"}, max_retries=2)
    yard.wait(ref, "completed", seconds=300)
    first, last = yard.attempts(ref)[0], yard.attempts(ref)[-1]
    assert first["end"] == "failed"
    assert first["diagnosis"]["facts"]["rank"] == 1, first["diagnosis"]
    assert last["number"] == 2
    assert any("begins at step 20" in line for line in yard.logs(ref, attempt=2))
    assert final_loss(yard, ref) == pytest.approx(undisturbed, rel=1e-4)
    assert "rank 1 failed first" in yard.cli("explain", ref).stdout


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_torch_cancel_leaves_nothing(yard, launcher):
    """R41: the launcher and all that it started."""
    ref = train(yard, launcher, env_vars={"SECONDS_PER_STEP": "0.5", "STEPS": "10000"})
    yard.wait(ref, "running")
    until(lambda: yard.job(ref)["metrics"].get("step"), 120, lambda: yard.logs(ref))
    answer = yard.cancel(ref, wait=60)
    assert answer.body["status"] == "cancelled"
    assert answer.body["receipt"]["proof"] == "echild"


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_torch_gloo_hang_stall_rule(tmp_path, launcher):
    """R34: a rank stops calling collectives: nobody exits, only the steps tell."""
    settings = {
        "RUNYARD_MONITORING_INTERVAL": "0.5",
        "RUNYARD_STALL_MIN_S": "3",
        "RUNYARD_STALL_ACTION": "stop",
    }
    yard = RunningYard(tmp_path / "yard", env=settings).start()
    try:
        program = tmp_path / "hangs.py"
        text = PROGRAM.read_text().replace("os.kill(os.getpid(), 9)", "time.sleep(3600)")
        program.write_text(text)
        env = {"PYTHONPATH": str(Path(runyard.__file__).parents[1]), "BREAK": "1:25"}
        shape = {"procs_per_node": 2, "launcher": launcher}
        ref = yard.submit([PYTHON, str(program)], distributed=shape, env_vars=env, grace_s=3)
        job = yard.wait(ref, "failed", seconds=300)
        assert job["diagnosis"]["category"] == "comm_hang"
        [found] = yard.ask(f"/jobs/{ref}/explain")["evidence"]
        names = [name.rpartition("/")[2] for name in found["files"]]
        assert {name.split("-pid")[0] for name in names} >= {"rank-0", "rank-1"}
    finally:
        yard.stop()
