"""Stacks as a node tells them: by the program of the slice, with nothing but the supervisor."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import runyard
from runyard.executors import supervisor_spec
from runyard.executors.base import Launch
from runyard.supervisor import journal, slice_main
from yards import until

# Of an interpreter that has no py-spy beside it, as nodes are.
PYTHON = os.path.realpath(sys.executable)
BARE = [PYTHON, "-I", "-S", "-X", "utf8", slice_main.__file__]
ATTEMPT = "stacks.1"
STANDS = """
import sys, time
from runyard import report
report.report(step=1)
def stands_here():
    print("up", flush=True)
    time.sleep(600)
stands_here()
"""


@contextmanager
def slice_of(folder: Path, tag: int, rank: int):
    """A slice of the attempt in a folder of its own; ended with its lifeline."""
    run_dir = folder / "attempts" / ATTEMPT
    run_dir.mkdir(parents=True)
    env = {
        "RUNYARD_ATTEMPT_ID": ATTEMPT,
        "RUNYARD_RUN_DIR": str(run_dir),
        "RUNYARD_METRICS_FILE": str(run_dir / "metrics.jsonl"),
        "PYTHONPATH": str(Path(runyard.__file__).parents[1]),
        "RANK": str(rank),
    }
    argv = (PYTHON, "-c", STANDS)
    launch = Launch(ATTEMPT, "stacks", tag, argv, env, str(folder), grace_s=0.2)
    order = {"attempt_id": ATTEMPT, "spec": supervisor_spec.build(launch)}
    shim = subprocess.Popen([*BARE, str(folder)], stdin=subprocess.PIPE)
    try:
        shim.stdin.write(json.dumps(order).encode() + b"\n")
        shim.stdin.flush()
        log = run_dir / "out.log"
        until(lambda: log.exists() and "up" in log.read_text(), 60)
        yield run_dir
    finally:
        shim.stdin.close()
        shim.wait(60)


def told(folder: Path) -> list[dict]:
    done = subprocess.run(
        [*BARE, str(folder), "--stacks", ATTEMPT, "20"],
        env={"PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        timeout=90,
        check=True,
    )
    return json.loads(done.stdout)


def answered(folder: Path) -> list[dict]:
    """Nothing while one was too busy to say itself where it is."""
    found = told(folder)
    return [] if any(one["by"] == "proc" for one in found) else found


def test_each_slice_tells_of_its_own_ranks(tmp_path):
    """R34: slices of one attempt on one machine have the same proofs; the folder tells them
    apart."""
    tag = (1 << 40) + secrets.randbits(30)
    with (
        slice_of(tmp_path / "n0", tag, 0) as first,
        slice_of(tmp_path / "n1", tag, 1) as second,
    ):
        for rank, run_dir in enumerate((first, second)):
            [found] = until(lambda place=run_dir.parents[1]: answered(place))
            assert (found["rank"], found["pid"]) == (rank, journal.read(str(run_dir)).job["pid"])
            assert found["by"] in ("py-spy", "faulthandler")
            assert "stands_here" in found["text"]
            assert len(found["text"]) <= slice_main.STACK_LENGTH


def test_where_nothing_runs_there_is_nothing_to_tell(tmp_path):
    assert told(tmp_path) == []
