"""The callbacks inside the real frameworks: `make test-frameworks` with a Python that has them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import runyard
from yards import until

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(600)]

PROGRAMS = Path(__file__).parent / "frameworks"
PYTHON = os.environ.get("FRAMEWORKS_PYTHON") or shutil.which("python3") or sys.executable
# family: steps in all, what its logs must contain, where a stop saves
FAMILIES = {
    "huggingface": (24, {"loss", "learning_rate", "eval_loss"}, "checkpoint-"),
    "lightning": (24, {"train_loss", "val_loss"}, "stopped-step="),
    "keras": (24, {"loss", "mae", "val_loss"}, "stopped-step-"),
}


def start(program: str, folder: Path, seconds_per_step: float, **more: str) -> subprocess.Popen:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(Path(runyard.__file__).parents[1]),
        "CUDA_VISIBLE_DEVICES": "",
        "SECONDS_PER_STEP": str(seconds_per_step),
        "RUNYARD_METRICS_FILE": str(folder / "metrics.jsonl"),
        "RUNYARD_STOP_FILE": str(folder / "stop"),
        "RUNYARD_CHECKPOINT_DIR": str(folder / "checkpoints"),
        **more,
    }
    return subprocess.Popen(
        [PYTHON, PROGRAMS / f"{program}.py", folder / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )


def told(folder: Path) -> list[dict]:
    """Every line that is whole: the program may be writing the next."""
    path = folder / "metrics.jsonl"
    written = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in written[: written.rfind("\n") + 1].splitlines()]


def finish(process: subprocess.Popen) -> str:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out.split()[-1]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_whole_training_is_told(family, tmp_path):
    """R15"""
    total, names, _ = FAMILIES[family]
    assert finish(start(f"{family}_training", tmp_path, 0)) == str(total)
    lines = [line for line in told(tmp_path) if "kind" not in line]
    steps = [line["step"] for line in lines]
    assert steps == sorted(steps)
    assert steps[-1] == total
    assert {line.get("total") for line in lines} == {total}
    assert names <= {name for line in lines for name in line}
    named = {line["phase"] for line in lines if "phase" in line}
    assert {"evaluating", "finishing"} <= named
    assert lines[-1].get("phase") == "finishing"
    assert family == "keras" or "saving" in named
    if family != "keras":  # which is given no saver of its own here
        saved = [line for line in told(tmp_path) if line.get("kind") == "checkpoint"]
        assert saved
        assert all(os.path.isabs(line["path"]) for line in saved)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stop_request_saves_and_leaves(family, tmp_path):
    """R1"""
    total, _, name = FAMILIES[family]
    with start(f"{family}_training", tmp_path, 0.5) as process:
        try:
            until(
                lambda: (
                    process.poll() is not None
                    or any(line.get("step", 0) >= 2 for line in told(tmp_path))
                ),
                seconds=240,
            )
            (tmp_path / "stop").touch()
            finish(process)
        finally:
            process.kill()
    saved = [line for line in told(tmp_path) if line.get("kind") == "checkpoint"]
    mine = [line for line in saved if name in line["path"]]
    assert mine
    assert os.path.exists(mine[-1]["path"])
    assert 2 <= mine[-1]["step"] < total


def test_ranks_leave_at_the_same_step(tmp_path):
    ranks = [
        start("ranks_that_agree", tmp_path, 0, RANK=str(rank), WORLD_SIZE="2") for rank in (0, 1)
    ]
    steps = [finish(rank) for rank in ranks]
    assert steps[0] == steps[1]
    assert int(steps[0]) >= 20
