"""Runs one slice of an attempt of tests/file_cluster.py, and records how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(folder: Path, index: int) -> None:
    spec = json.loads((folder / "spec.json").read_text())
    part = spec["slices"][index]
    ranks = [_started(folder, spec, part, rank) for rank in part["ranks"]]
    _write(folder / f"begun-{index}.json", {"at": time.time()})
    killed_at = None
    while any(rank.poll() is None for rank in ranks):
        stop = folder / "stop.json"
        if killed_at is None and stop.exists():
            killed_at = time.monotonic() + json.loads(stop.read_text())["grace_s"]
            _signal(ranks, signal.SIGTERM)
        if killed_at is not None and time.monotonic() > killed_at:
            _signal(ranks, signal.SIGKILL)
        time.sleep(0.02)
    codes = [rank.returncode for rank in ranks]
    worst = next((code for code in codes if code), 0)
    ended = {"code": None, "signal": -worst} if worst < 0 else {"code": worst, "signal": None}
    _write(folder / f"end-{index}.json", {**ended, "at": time.time()})


def _started(folder, spec, part, rank):
    env = {**spec["env"], **part["env"], **rank["env"]}
    name = f"rank-{rank['rank']}.log" if rank["rank"] else "out.log"
    with open(folder / name, "ab") as log:
        return subprocess.Popen(
            part["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            cwd=spec["cwd"],
            start_new_session=True,
        )


def _signal(ranks, number) -> None:
    for rank in ranks:
        if rank.poll() is None:  # not reaped yet, so that the number is still its own
            os.killpg(rank.pid, number)


def _write(path: Path, value) -> None:
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(json.dumps(value))
    draft.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
