"""kill -9 of the daemons at chosen moments of a job's life, while other jobs stream in."""

from __future__ import annotations

import contextlib
import http.client
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from storm import KEEPER, SUPERVISOR, Storm

from runyard.supervisor import journal
from yards import until

STAGES = ("submit", "start", "run", "cancel", "end")
# "daemons" are those that every job shares: a job whose supervisor lives keeps its exit code.
TARGETS = ("server", "keeper", "daemons", "daemons", "supervisors", "everything")
MANY = 99


@dataclass
class Verdict:
    """What became of every acknowledged job."""

    jobs: int = 0
    lost: list[str] = field(default_factory=list)  # acknowledged, and no longer known
    run_twice: list[str] = field(default_factory=list)  # attempts; also two of one job at once
    outlived: bool = False  # a process was there after every job had ended
    codes_expected: int = 0  # attempts that ended by themselves below a supervisor left alone
    codes_kept: int = 0
    untrue: list[str] = field(default_factory=list)  # any other promise that was broken


@dataclass
class KillPoints(Storm):
    struck: Counter[str] = field(default_factory=Counter)  # per stage

    def strike(self, kills: int, enough: Any = None) -> None:
        """So many kills over all stages, or until `enough` says so; returns when all has ended."""
        threads = self._threads()
        for thread in threads:
            thread.start()
        try:
            for number in range(kills):
                self._strike_once(STAGES[number % len(STAGES)])
                if enough is not None and enough(number + 1):
                    break
        finally:
            self.calm.set()
            for thread in threads:
                thread.join()
        self._ensure_server()
        until(lambda: not self._unended(), 180, lambda: self.described(self._unended()), every=0.3)

    def _duties(self) -> list[Any]:
        return [self._submit_one, self._cancel_one, self._look_at_ends]

    def _strike_once(self, stage: str) -> None:
        self._imitate_one()
        request = getattr(self, f"_until_{stage}")(self._fork())
        self._kill(self.random.choice(TARGETS))
        self.struck[stage] += 1
        if request is not None:
            request.join()
        self._ensure_server()

    # each returns within that stage of a job, with the request that is on its way if there is one

    def _until_submit(self, chosen: random.Random) -> threading.Thread:
        seconds, its_own = chosen.uniform(0, 0.012), random.Random(chosen.random())
        request = self._request(lambda: self._submit_first(its_own))
        time.sleep(seconds)
        return request

    def _until_start(self, chosen: random.Random) -> None:
        self._submit_first(chosen)
        time.sleep(chosen.uniform(0, 0.02))

    def _until_run(self, chosen: random.Random) -> None:
        self._submit_first(chosen, 1.5)
        time.sleep(chosen.uniform(0.03, 0.5))

    def _until_cancel(self, chosen: random.Random) -> threading.Thread | None:
        ref = self._submit_first(chosen, 20)
        time.sleep(chosen.uniform(0.02, 0.2))
        if ref is None:
            return None
        request = self._request(lambda: self._cancel(ref))
        time.sleep(chosen.uniform(0, 0.03))
        return request

    def _until_end(self, chosen: random.Random) -> None:
        seconds = round(chosen.uniform(0.05, 0.3), 3)
        self._submit_first(chosen, seconds)
        time.sleep(max(0, seconds + chosen.uniform(-0.01, 0.04)))

    def _submit_first(self, chosen: random.Random, seconds: float | None = None) -> str | None:
        """Ahead of all that waits, so that the stage is the one that is meant."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self._submit_one(chosen, seconds, priority="high")
        return None

    def _request(self, ask: Any) -> threading.Thread:
        def asked() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                ask()

        thread = threading.Thread(target=asked)
        thread.start()
        return thread

    def _kill(self, target: str) -> None:
        if target in ("server", "daemons", "everything"):
            self.yard.kill9()
        if target in ("keeper", "daemons", "everything"):
            self._kill_processes(KEEPER, MANY)
        if target in ("supervisors", "everything"):
            self._kill_processes(SUPERVISOR, MANY)
        self.killed[target] += 1

    # what has become of it

    def verdict(self) -> Verdict:
        found = Verdict(jobs=len(self.codes), untrue=list(self.trouble))
        try:
            until(lambda: not self.truth.held(), 10)
        except AssertionError:
            found.outlived = True
        marks = self.marks()
        starts = Counter(attempt for word, attempt in marks if word == "start")
        found.run_twice = [attempt for word, attempt in marks if word == "double"]
        found.run_twice += [attempt for attempt, count in starts.items() if count > 1]
        finished = {attempt for word, attempt in marks if word == "end"}
        for ref, code in self.codes.items():
            if self.yard.api("GET", f"/jobs/{ref}").status == 404:
                found.lost.append(ref)
                continue
            try:
                self._assert_job_true(ref, code, set(starts), finished)
            except AssertionError as error:
                found.untrue.append(str(error))
            self._count_codes(ref, code, finished, found)
        return found

    def _count_codes(self, ref: str, code: int, finished: set[str], found: Verdict) -> None:
        """A cancel may meet a process between its last word and its exit, so it is left out."""
        if self.yard.status(ref) == "cancelled":
            return
        for attempt in self.yard.attempts(ref):
            name = attempt["attempt_id"]
            if name not in finished or self._lost_its_supervisor(name):
                continue
            found.codes_expected += 1
            if attempt["exit_code"] == code:
                found.codes_kept += 1
            else:
                found.untrue.append(f"exit code of {name} not kept: {attempt}")

    def _lost_its_supervisor(self, name: str) -> bool:
        record = journal.read(str(self.yard.data / "attempts" / name)).supervisor
        assert record is not None
        return (record["pid"], record["start_ticks"]) in self.supervisors_killed
