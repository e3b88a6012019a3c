"""Fifty jobs of every temper, for tests in which servers, keepers and supervisors die."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from runyard.supervisor import journal
from yards import SMALL, RunningYard, Truth, kill9, until

# Every process of a job holds descriptor 9, the write end of its FIFO, and says so with one line.
SHORT = (
    "exec 9>{truth}; echo up >&9; read _ <{go}; "
    "date +%s.%N >{ended}.new; mv {ended}.new {ended}; exit {code}"
)
OBEYS = "exec 9>{truth}; echo up >&9; exec sleep 600"
IGNORES = "trap '' TERM; exec 9>{truth}; setsid sleep 600 & echo up >&9; exec sleep 600"
DAEMON = "exec 9>{truth}; (setsid env -i sh -c 'echo up >&9; exec sleep 600' &); exec sleep 600"
SESSION = "exec 9>{truth}; setsid sh -c 'echo up >&9; exec sleep 600' & exec sleep 600"
SHORT_COUNT = 15
LONG = [OBEYS] * 15 + [IGNORES] * 10 + [DAEMON] * 5 + [SESSION] * 5


class Crowd:
    """Submitted in one batch: `short` end with the codes 0 to 14 when let go, `long` never do (and
    are left out where `only_short`).

    Each third of the long ones stays out of `doomed`, whose supervisors a test may kill: so there
    are some of every temper on both sides.
    """

    def __init__(self, yard: RunningYard, folder: Path, *, only_short: bool = False) -> None:
        self.yard = yard
        self.folder = folder
        self.short_truth = Truth(folder / "short")
        self.kept_truth = Truth(folder / "kept")
        self.doomed_truth = Truth(folder / "doomed")
        self.go = folder / "go"
        os.mkfifo(self.go)
        commands = [self._short(code) for code in range(SHORT_COUNT)]
        commands += [self._long(n, s) for n, s in enumerate(() if only_short else LONG)]
        jobs = [{**SMALL, "command": ["sh", "-c", c], "grace_s": 1} for c in commands]
        answer = yard.api("POST", "/jobs/batch", {"jobs": jobs})
        assert answer.status == 201, answer.data
        refs = [job["job_id"] for job in answer.body["jobs"]]
        self.short, self.long = refs[:SHORT_COUNT], refs[SHORT_COUNT:]
        self.doomed = [ref for n, ref in enumerate(self.long) if _is_doomed(n)]
        self.kept = [ref for n, ref in enumerate(self.long) if not _is_doomed(n)]

    def _short(self, code: int) -> str:
        return SHORT.format(
            truth=self.short_truth.path, go=self.go, ended=self.folder / f"ended.{code}", code=code
        )

    def _long(self, n: int, script: str) -> str:
        truth = self.doomed_truth if _is_doomed(n) else self.kept_truth
        return script.format(truth=truth.path)

    def wait_until_up(self) -> None:
        """Every process stands, and the server knows."""
        for truth, count in (
            (self.short_truth, len(self.short)),
            (self.kept_truth, len(self.kept)),
            (self.doomed_truth, len(self.doomed)),
        ):
            until(
                lambda t=truth, n=count: not n or (t.held() and t.data.count(b"\n") >= n),
                60,
                lambda t=truth, n=count: f"{t.data.count(b'up')} of {n} jobs are up",
            )
        until(lambda: self.count("running") == len(self.short + self.long))

    def count(self, status: str) -> int:
        answer = self.yard.api("GET", f"/jobs?status={status}&limit=1")
        return int(answer.headers["X-Total-Count"])

    def let_the_short_ones_end(self) -> None:
        """Returns when every process of theirs is dead, and recorded as that."""
        fd = os.open(self.go, os.O_WRONLY)
        os.write(fd, b"\n" * len(self.short))
        until(lambda: not self.short_truth.held(), words="the short jobs end")
        os.close(fd)
        until(lambda: self.settled(self.short), words="and their supervisors record it")

    def end_time(self, code: int) -> float:
        """When the job itself says that it ended."""
        return float((self.folder / f"ended.{code}").read_text())

    def attempt_folder(self, ref: str) -> str:
        return f"{self.yard.data}/attempts/{ref}.1"

    def kill_supervisors(self, refs: list[str]) -> None:
        for ref in refs:
            record = journal.read(self.attempt_folder(ref)).supervisor
            kill9(record)

    def settled(self, refs: list[str]) -> bool:
        """Whether all have their end record, server or not."""
        return all(journal.read(self.attempt_folder(ref)).exit for ref in refs)

    def close(self) -> None:
        for truth in (self.short_truth, self.kept_truth, self.doomed_truth):
            truth.close()


def _is_doomed(n: int) -> bool:
    return n % 7 < 4  # 20 of 35


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
