"""A training that is cut off goes on from its newest good checkpoint (R19)."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from yards import until

# Saves itself at each step like torch does; tells each step, and what it began from, in a file.
PROGRAM = """
import json, os, sys, time, zipfile
folder, seen, last, kind = sys.argv[1:5]
given = os.environ.get("RUNYARD_RESUME_FROM", "")
assert given == sys.argv[5], (given, sys.argv[5])
step = 0
if given:
    with zipfile.ZipFile(given) as file:
        step = int(file.read("model/step"))
with open(seen, "a") as file:
    file.write(json.dumps({"pid": os.getpid(), "from": given, "step": step}) + "\\n")

def save(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model/data.pkl", b"weights" * 1000)
        file.writestr("model/step", str(step))

while step < int(last):
    step += 1
    path = os.path.join(folder, f"model_step_{step}.pt")
    if kind == "report":
        sys.path.insert(0, os.environ["SOURCES"])
        from runyard import report
        report.save_checkpoint(save, path, step, loss=1.0 / step)
    else:
        save(path + ".tmp")
        os.rename(path + ".tmp", path)
    with open(seen, "a") as file:
        file.write(json.dumps({"saved": step}) + "\\n")
    while step % 3 == 0 and step < int(last) and not os.path.exists(seen + f".go{step}"):
        time.sleep(0.02)
"""


class Training:
    """One such job, seen by what it writes."""

    def __init__(self, yard, folder: Path, kind: str = "plain", last: int = 6, **fields) -> None:
        self.yard, self.folder = yard, folder
        self.seen = folder / "seen"
        program = folder / "program.py"
        program.write_text(PROGRAM)
        place = "{checkpoint_dir}"
        argv = [sys.executable, str(program), place, str(self.seen), str(last), kind]
        sources = str(Path(__file__).parents[2] / "src")
        fields = {"env_vars": {"SOURCES": sources}, "max_retries": 3, **fields}
        self.ref = yard.submit([*argv, "{resume_from}"], **fields)

    def lines(self) -> list[dict]:
        if not self.seen.exists():
            return []
        text = self.seen.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def starts(self) -> list[dict]:
        return [line for line in self.lines() if "pid" in line]

    def wait_saved(self, step: int) -> None:
        def is_there() -> bool:
            return {"saved": step} in self.lines()

        until(is_there, 60, lambda: (self.lines(), self.yard.logs(self.ref)))

    def kill(self) -> None:
        os.kill(self.starts()[-1]["pid"], signal.SIGKILL)

    def go(self, step: int) -> None:
        Path(f"{self.seen}.go{step}").touch()

    def checkpoints(self) -> dict[str, dict]:
        found = self.yard.api("GET", f"/jobs/{self.ref}/checkpoints").body
        return {Path(one["path"]).name: one for one in found}

    def path(self, step: int) -> Path:
        return self.yard.data / "outputs" / self.ref / "checkpoints" / f"model_step_{step}.pt"


@pytest.mark.parametrize("kind", ["plain", "report"])
def test_a_killed_training_goes_on_from_the_newest_checkpoint(yard, tmp_path, kind):
    training = Training(yard, tmp_path, kind)
    training.wait_saved(3)
    training.kill()
    until(lambda: len(training.starts()) == 2, 60, lambda: yard.logs(training.ref))
    assert training.starts()[1]["from"] == str(training.path(3))
    assert training.starts()[1]["step"] == 3
    training.go(3)
    yard.wait(training.ref, "completed", seconds=60)
    until(lambda: len(training.checkpoints()) == 6, words=training.checkpoints)

    def all_good() -> bool:
        return {one["verdict"] for one in training.checkpoints().values()} == {"good"}

    until(all_good, words=training.checkpoints)
    known = training.checkpoints()
    assert [known[f"model_step_{n}.pt"]["step"] for n in range(1, 7)] == [1, 2, 3, 4, 5, 6]
    assert known["model_step_3.pt"]["reported"] is (kind == "report")
    if kind == "report":
        assert known["model_step_2.pt"]["metrics"] == {"loss": 0.5}


def test_a_truncated_newest_checkpoint_is_skipped_for_the_one_before(yard, tmp_path):
    training = Training(yard, tmp_path)
    training.wait_saved(3)
    newest = training.path(3)
    os.truncate(newest, newest.stat().st_size // 2)
    training.kill()
    until(lambda: len(training.starts()) == 2, 60, lambda: yard.logs(training.ref))
    assert training.starts()[1]["from"] == str(training.path(2))
    bad = training.checkpoints()["model_step_3.pt"]
    assert (bad["verdict"], bad["why"]["code"]) == ("bad", "truncated")
    training.go(3)
    yard.wait(training.ref, "completed", seconds=60)
    chosen = [
        one["params"]["step"]
        for one in yard.api("GET", f"/jobs/{training.ref}/events").body
        if one["code"] == "checkpoint_chosen"
    ]
    assert chosen == [2]
    [told] = yard.ask(f"/jobs/{training.ref}/explain")["failures"]
    assert told["checkpoint"] == {
        "path": str(training.path(2)),
        "step": 2,
        "passed_over": [{"path": str(training.path(3)), "step": 3, "why": "truncated"}],
    }
    screen = yard.cli("explain", training.ref).stdout
    assert f"{training.path(2)} (step 2)" in screen
    assert f"{training.path(3)} (step 3): truncated" in screen


def test_retry_goes_on_unless_asked_to_begin_anew(yard, tmp_path):
    training = Training(yard, tmp_path, last=3)
    yard.wait(training.ref, "completed", seconds=60)
    yard.api("POST", f"/jobs/{training.ref}/retry", {})
    yard.wait(training.ref, "completed", seconds=60)
    yard.api("POST", f"/jobs/{training.ref}/retry", {"fresh": True})
    yard.wait(training.ref, "completed", seconds=60)
    begun = [(one["from"] != "", one["step"]) for one in training.starts()]
    assert begun == [(False, 0), (True, 3), (False, 0)]


def test_resume_never_begins_anew(yard, tmp_path):
    training = Training(yard, tmp_path, last=3, checkpoint={"resume": "never"})
    yard.wait(training.ref, "completed", seconds=60)
    yard.api("POST", f"/jobs/{training.ref}/retry", {})
    yard.wait(training.ref, "completed", seconds=60)
    assert [one["from"] for one in training.starts()] == ["", ""]


def test_own_directory_own_pattern_and_how_many_are_kept(yard, tmp_path):
    fields = {"dir": "ckpt", "pattern": "model_*.pt", "keep": 2, "every": 1}
    training = Training(yard, tmp_path, checkpoint=fields, working_dir=str(tmp_path))
    other = tmp_path / "ckpt" / "notes.txt"
    until((tmp_path / "ckpt").is_dir, 60)
    other.write_text("stays")
    training.wait_saved(3)
    training.go(3)
    yard.wait(training.ref, "completed", seconds=60)
    assert yard.job(training.ref)["checkpoint"] == {**fields, "resume": "auto"}

    def left() -> list[str]:
        return sorted(one.name for one in (tmp_path / "ckpt").iterdir())

    until(
        lambda: left() == ["model_step_5.pt", "model_step_6.pt", "notes.txt"],
        60,
        lambda: (left(), training.checkpoints()),
    )

    def verdicts() -> list[str]:
        return sorted(one["verdict"] for one in training.checkpoints().values())

    until(lambda: verdicts() == ["gone"] * 4 + ["good"] * 2, words=verdicts)
