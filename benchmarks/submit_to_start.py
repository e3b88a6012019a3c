"""How long from a submit over HTTP to the first act of the job, against a bare spawn of it?"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import peers
from measurement import begin, median, percentile, quick
from yard_under_test import BASE, SMALL, Yard, until

ROUNDS = 20 if quick() else 200
SHELL = shutil.which("sh") or "/bin/sh"


def stamping(file: Path) -> list[str]:
    """The job: its first act is to write down when it acted."""
    return [SHELL, "-c", f"date +%s%N > {file}"]


def stamp_in(file: Path) -> int:
    until(lambda: file.exists() and file.read_bytes().endswith(b"\n"), 20, every=0.002)
    stamp = int(file.read_text())
    file.unlink()
    return stamp


def spawn(command: list[str]) -> None:
    os.waitpid(os.posix_spawn(command[0], command, os.environ), 0)


def timed(file: Path, start: Callable[[list[str]], object]) -> float:
    began = time.time_ns()
    start(stamping(file))
    return (stamp_in(file) - began) / 1e6


class Submitter:
    """Submits over the yard's kept connection and remembers how long the answer took."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.job = ""
        self.answer_ms = 0.0

    def submit(self, command: list[str]) -> None:
        began = time.perf_counter()
        status, answer = self.yard.http.request(
            "POST", f"{BASE}/jobs", {"command": command, **SMALL}
        )
        self.answer_ms = (time.perf_counter() - began) * 1e3
        assert status == 201, answer
        self.job = answer["job_id"]


def measure(yard: Yard, spooler: peers.TaskSpooler | None) -> dict[str, list[float]]:
    """The same job started in turn by each, so that all meet the same machine."""
    samples: dict[str, list[float]] = {"spawn": [], "runyard": [], "answer": [], "tsp": []}
    file, submitter = yard.folder / "stamp", Submitter(yard)
    for number in range(ROUNDS + 3):
        if number == 3:  # the first ones warmed every cache
            for values in samples.values():
                values.clear()
        samples["spawn"].append(timed(file, spawn))
        samples["runyard"].append(timed(file, submitter.submit))
        samples["answer"].append(submitter.answer_ms)
        yard.wait(submitter.job)
        if spooler is not None:
            samples["tsp"].append(timed(file, spooler.submit))
            spooler.drain()
        time.sleep(0.01)
    return samples


def main() -> None:
    result = begin(__doc__ or "")
    with Yard() as yard, peers.task_spooler(2) if peers.has_tsp() else nullcontext() as spooler:
        samples = measure(yard, spooler)
    floor_50, floor_95 = median(samples["spawn"]), percentile(samples["spawn"], 95)
    result.add("floor: posix_spawn, p50", floor_50, "ms")
    result.add("floor: posix_spawn, p95", floor_95, "ms")
    result.add("runyard, p50", median(samples["runyard"]), "ms")
    result.add("runyard, p95", percentile(samples["runyard"], 95), "ms")
    result.add("runyard, answer to the submit, p50", median(samples["answer"]), "ms")
    result.add("runyard, p50 over floor", median(samples["runyard"]) / floor_50, "x", "<= 4")
    result.add(
        "runyard, p95 over floor", percentile(samples["runyard"], 95) / floor_95, "x", "<= 6"
    )
    if samples["tsp"]:
        result.add("task-spooler, p50 over floor", median(samples["tsp"]) / floor_50, "x")
        result.add("task-spooler, p95 over floor", percentile(samples["tsp"], 95) / floor_95, "x")
    result.keep()


if __name__ == "__main__":
    main()
