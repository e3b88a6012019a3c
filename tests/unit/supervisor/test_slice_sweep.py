"""What hangs on a node without being dead: its processes are killed, and what was stopped goes on.

Without Ray: the program of the slice, with nothing but the supervisor.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard.executors import supervisor_spec
from runyard.executors.base import Launch
from runyard.supervisor import journal, process_table, slice_keeper, slice_main, stop_request
from yards import Truth, alive, until

BARE = [os.path.realpath(sys.executable), "-I", "-S", "-X", "utf8", slice_main.__file__]
ASKED = {"seq": 2, "cause": "user", "grace_s": 600.0, "requested_by": "ann", "requested_at": 5.0}


class Slice:
    """A slice whose job ignores SIGTERM and holds the truth."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.attempt_id = f"sweep{secrets.token_hex(4)}.1"
        self.run_dir = folder / "attempts" / self.attempt_id
        self.run_dir.mkdir(parents=True)
        self.truth = Truth(folder / "truth")
        script = f"exec 9>{self.truth.path}; trap '' TERM; echo up; exec sleep 600"
        env = {"RUNYARD_ATTEMPT_ID": self.attempt_id, "PATH": os.environ["PATH"]}
        tag = (1 << 40) + secrets.randbits(30)
        argv = ("/bin/sh", "-c", script)
        launch = Launch(self.attempt_id, "sweep", tag, argv, env, str(folder), grace_s=600)
        self.shim = subprocess.Popen([*BARE, str(folder)], stdin=subprocess.PIPE)
        order = {"attempt_id": self.attempt_id, "spec": supervisor_spec.build(launch)}
        self.say(order)
        log = self.run_dir / "out.log"
        until(lambda: log.exists() and "up" in log.read_text(), 60)
        [self.keeper] = process_table.children(self.shim.pid)
        self.supervisor = journal.read(str(self.run_dir)).supervisor["pid"]

    def say(self, line: object) -> None:
        assert self.shim.stdin is not None
        self.shim.stdin.write(json.dumps(line).encode() + b"\n")
        self.shim.stdin.flush()

    def pid_of(self, whom: str) -> int:
        return {"shim": self.shim.pid, "keeper": self.keeper, "supervisor": self.supervisor}[whom]

    def freeze(self, whom: str) -> None:
        pid = self.pid_of(whom)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: process_table.describe(pid)["state"] == "T", 30)

    def run(self, *arguments: str, given: object = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*BARE, str(self.folder), arguments[0], self.attempt_id, *arguments[1:]],
            input=json.dumps(given).encode(),
            stdout=subprocess.PIPE,
            timeout=90,
        )

    def exit(self) -> dict | None:
        return journal.read(str(self.run_dir)).exit

    def close(self) -> None:
        """Whatever became of the test."""
        assert self.shim.stdin is not None
        self.shim.stdin.close()
        for whom in ("shim", "keeper", "supervisor"):
            if alive(self.pid_of(whom)):
                os.kill(self.pid_of(whom), signal.SIGCONT)
        self.shim.wait(60)
        self.truth.close()


@pytest.fixture
def slice_at_work(tmp_path):
    made = Slice(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("whom", ["shim", "keeper", "supervisor"])
def test_a_sweep_ends_what_hangs(slice_at_work, whom):
    """R6: the request comes with it, for a keeper that hangs has not written it down."""
    slice_at_work.freeze(whom)
    done = slice_at_work.run("--sweep", given=ASKED)
    told = json.loads(done.stdout)
    assert (told["killed"] >= 1, told["living"]) == (True, [])
    assert not slice_at_work.truth.held()
    end = until(slice_at_work.exit, 60)
    assert end["stop"]["requested_by"] == "ann"
    until(lambda: not alive(slice_at_work.keeper), 60)
    assert slice_at_work.shim.wait(60) == 0


@pytest.mark.parametrize("whom", ["keeper", "supervisor"])
def test_a_slice_without_an_actor_ends_though_it_hangs(slice_at_work, whom):
    """What watches in place of a dead actor lets it go on."""
    slice_at_work.freeze(whom)
    slice_at_work.shim.stdin.close()
    until(lambda: slice_at_work.run("--settle").returncode == 0, 60)
    assert not slice_at_work.truth.held()
    assert slice_at_work.exit()["cause"] == "supervisor_lost"
    assert slice_at_work.shim.wait(60) == 0


def test_a_slice_nobody_asked_to_end_is_not_swept_by_others(slice_at_work, tmp_path):
    """Its folder is the proof: that of another slice ends nothing of it."""
    other = tmp_path / "other"
    run_dir = other / "attempts" / "nobody.1"
    run_dir.mkdir(parents=True)
    journal.create(str(run_dir), {"tag": 1 << 41})
    done = subprocess.run(
        [*BARE, str(other), "--sweep", "nobody.1"],
        input=json.dumps(ASKED).encode(),
        stdout=subprocess.PIPE,
        timeout=90,
        check=True,
    )
    assert json.loads(done.stdout) == {"killed": 0, "living": []}
    assert slice_at_work.truth.held()


@pytest.mark.parametrize(
    ("asked", "grace_s", "cause", "by"),
    [
        (None, slice_keeper.LIFELINE_GRACE_S, "lifeline", "keeper"),
        ({"grace_s": 600.0}, slice_keeper.LIFELINE_GRACE_S, "user", "ann"),
        ({"grace_s": 0.0}, 0.0, "user", "ann"),
    ],
)
def test_who_asked_first_stays_known_when_the_lifeline_is_lost(
    tmp_path, asked, grace_s, cause, by
):
    if asked is not None:
        slice_keeper.write_request(str(tmp_path), {**ASKED, **asked})
    for _ in range(2):
        slice_keeper.tell_lost(str(tmp_path))
    found = stop_request.read(str(tmp_path))
    assert (found["grace_s"], found["cause"], found["requested_by"]) == (grace_s, cause, by)
    assert found["requested_at"] <= time.time()
