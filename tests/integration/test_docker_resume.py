"""Jobs with an image that save themselves: their next container goes on where they were (R19)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from docker_engine import IMAGE, UID, python_places
from image_jobs import settings_for
from yards import until

pytestmark = pytest.mark.root

SHARE = {"cpu_cores": 0.5, "max_retries": 3}
REPAIRABLE = Path(__file__).parents[1] / "repairable_program.py"
# Three good checkpoints, one that was cut off, and a failure; then from the third to the sixth.
# The one it resumed from is replaced and removed, as trainers do that keep the last few only.
PROGRAM = r"""
import json, os, sys, zipfile
folder, history = sys.argv[1:3]
given = os.environ.get("RUNYARD_RESUME_FROM", "")
assert given == sys.argv[3], (given, sys.argv[3])
step = 0
if given:
    with zipfile.ZipFile(given) as file:
        step = int(file.read("model/step"))
with open(history, "a") as file:
    file.write(json.dumps({"from": given, "step": step, "host": os.uname().nodename}) + "\n")

def save(step):
    path = os.path.join(folder, f"model_step_{step}.pt")
    with zipfile.ZipFile(path + ".tmp", "w") as file:
        file.writestr("model/data.pkl", b"weights" * 1000)
        file.writestr("model/step", str(step))
    os.rename(path + ".tmp", path)
    return path

if given:
    assert save(step) == given
while step < 6:
    step += 1
    path = save(step)
    if step == 4 and not given:
        os.truncate(path, os.path.getsize(path) // 2)
        print("Traceback (most recent call last):\nRuntimeError: something broke", flush=True)
        sys.exit(1)
if len(sys.argv) > 4:
    os.unlink(given)
"""


@pytest.fixture
def make_docker_yard(make_yard, docker_engine):
    def make(**settings):
        env = settings_for(docker_engine, *python_places())
        return make_yard(env=env | settings).start()

    yield make
    assert docker_engine.containers() == []


def train(yard, *more, **fields):
    argv = [sys.executable, "-c", PROGRAM, "{checkpoint_dir}", "/workspace/history"]
    return yard.submit([*argv, "{resume_from}", *more], image=IMAGE, **{**SHARE, **fields})


def starts(yard, ref):
    lines = (yard.data / "outputs" / ref / "history").read_text().splitlines()
    return [json.loads(line) for line in lines]


def checkpoints(yard, ref):
    return {Path(one["path"]).name: one for one in yard.ask(f"/jobs/{ref}/checkpoints")}


@pytest.mark.parametrize("user", ["", f"{UID}:{UID}"])
def test_a_second_container_goes_on_from_the_last_good_checkpoint(make_docker_yard, user):
    """R19, R34: by a path that means the same inside and outside; checked outside; the one that
    was cut off is skipped, and the one it goes on from is the job's own to replace."""
    yard = make_docker_yard(RUNYARD_DOCKER_USER=user)
    ref = train(yard)
    yard.wait(ref, "completed", seconds=90)
    first, second = starts(yard, ref)
    third = yard.data / "outputs" / ref / "checkpoints" / "model_step_3.pt"
    assert (first["from"], first["step"]) == ("", 0)
    assert (second["from"], second["step"]) == (str(third), 3)
    assert first["host"] != second["host"]  # two containers
    assert [one["executor"] for one in yard.attempts(ref)] == ["docker", "docker"]
    assert [one["exit_code"] for one in yard.attempts(ref)] == [1, 0]

    def all_good() -> bool:
        found = checkpoints(yard, ref).values()
        return len(found) == 6 and {one["verdict"] for one in found} == {"good"}

    until(all_good, 30, lambda: checkpoints(yard, ref))
    assert third.stat().st_uid == (UID if user else 0)


def test_what_a_container_keeps_is_kept_outside(make_docker_yard):
    """R19, R34: a checkpoint folder below the workspace, so many kept, one removed by the job."""
    yard = make_docker_yard()
    spec = {"dir": "/workspace/kept", "pattern": "model_step_*.pt", "keep": 2}
    ref = train(yard, "remove", checkpoint=spec)
    yard.wait(ref, "completed", seconds=90)
    folder = yard.data / "outputs" / ref / "kept"
    assert starts(yard, ref)[1]["from"] == str(folder / "model_step_3.pt")
    wanted = ["model_step_5.pt", "model_step_6.pt"]

    def left() -> list[str]:
        return sorted(path.name for path in folder.iterdir())

    until(lambda: left() == wanted, 30, left)


def test_memory_of_a_gpu_that_runs_out_is_repaired_in_the_image(make_docker_yard):
    """R18, R20, R34: 32 -> 16 -> 8 by the parameter of the job, in its command and environment."""
    yard = make_docker_yard()
    argv = [sys.executable, str(REPAIRABLE), "--history", "/workspace/history", "--fits", "8"]
    argv += ["--batch_size", "{batch_size}", "--gradient_accumulation_steps", "{accumulation}"]
    script = ["/bin/sh", "-c", 'echo "$RUNYARD_PARAM_BATCH_SIZE" >>asked; exec "$@"', "sh", *argv]
    params = {"batch_size": 32, "accumulation": 1}
    ref = yard.submit(script, image=IMAGE, params=params, **SHARE)
    yard.wait(ref, "completed", seconds=120)
    output = yard.data / "outputs" / ref
    ran = [line.split() for line in (output / "history").read_text().splitlines()]
    assert [line[0] for line in ran] == ["32", "16", "8"]
    assert [line[-1] for line in ran] == ["0", "10", "10"]
    assert (output / "asked").read_text().split() == ["32", "16", "8"]
    first, second, _ = yard.attempts(ref)
    assert first["diagnosis"]["category"] == "gpu_oom"
    assert first["plan"]["strategy"] == "reduce_batch_size"
    assert second["params"]["batch_size"] == 16
