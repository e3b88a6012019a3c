"""runyard drill: does a job really recover? A fault is done to a throwaway clone of it, and what
becomes of that is told: 0 and pass, or 1 and fail."""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import Any

from runyard.cli import amounts, exit_codes, formatting, options, tables, wording
from runyard.domain.drills import FAULTS
from runyard.sdk import errors
from runyard.sdk.client import Client
from runyard.sdk.job import ENDED

_LOOK_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("job", metavar="JOB", help="id (job-... or a number)")
    parser.add_argument(
        "--after", metavar="SPAN", default="10s", help="do it so long after the start (10s)"
    )
    parser.add_argument(
        "--timeout", metavar="SPAN", default="30m", help="fail when it takes longer (30m)"
    )
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    after = amounts.seconds(args.after, "--after")
    deadline = time.monotonic() + amounts.seconds(args.timeout, "--timeout")
    clone = client.start_drill(args.job, args.fault)["job_id"]
    drill = _Drill(client, clone, args.fault, deadline, quiet=args.json)
    try:
        result = drill.run(after)
    finally:
        drill.clean_up()
    if args.json:
        tables.print_json(result)
    else:
        print(_sentence(result))
    return exit_codes.OK if result["verdict"] == "pass" else exit_codes.FAILED


class _Drill:
    def __init__(
        self, client: Client, clone: str, fault: str, deadline: float, *, quiet: bool
    ) -> None:
        self._client = client
        self._clone = clone
        self._fault = fault
        self._deadline = deadline
        self._quiet = quiet
        self._reached: float | None = None  # by the attempt that the fault was done to

    def run(self, after: float) -> dict[str, Any]:
        self._say("drill_begun", job=self._clone, fault=self._fault)
        struck = self._strike(after)
        if struck is None:
            return self._result("fail", "drill_not_struck")
        at = time.monotonic()
        self._say("drill_struck", job=self._clone, fault=self._fault)
        while time.monotonic() < self._deadline:
            result = self._look(struck, at)
            if result is not None:
                return result
            time.sleep(_LOOK_S)
        return self._result("fail", "drill_timed_out", at, self._client.get(self._clone))

    def _look(self, struck: dict[str, Any], at: float) -> dict[str, Any] | None:
        """The result, once it is clear."""
        if self._fault == "server":
            # It is gone for a moment: that is what is being tried.
            with contextlib.suppress(errors.ServerUnreachable, errors.Unavailable):
                return self._look_for_adoption(struck, at)
            return None
        job = self._client.get(self._clone)
        if self._fault == "hang" and self._is_noticed():
            return self._result("pass", "drill_noticed", at)
        ended = job["status"] in ENDED
        if not ended and not self._is_past(job, struck):
            return None
        felt = _number(job) > struck["attempt"]
        if ended and job["status"] != "completed":
            return self._result("fail", "drill_not_recovered", at, job)
        if not felt:
            return self._result("fail", "drill_not_felt", at, job)
        if self._fault == "nan":
            back = self._went_back(struck)
            code = "drill_diverged" if back else "drill_not_diverged"
            return self._result("pass" if back else "fail", code, at, job)
        return self._result("pass", "drill_recovered", at, job)

    def _look_for_adoption(self, struck: dict[str, Any], at: float) -> dict[str, Any] | None:
        """Passed when a new server has found the very process, and it came further with it."""
        job = self._client.get(self._clone)
        adopted = [one for one in self._client.events(self._clone) if one["code"] == "job_adopted"]
        if not adopted:  # the old server may still answer
            if job["status"] not in ENDED:
                return None
            again = _number(job) > struck["attempt"]
            return self._result(
                "fail", "drill_not_adopted" if again else "drill_not_felt", at, job
            )
        told = adopted[-1]["params"]
        same = (told["attempt"], told["pid"]) == (struck["attempt"], struck["pid"])
        if not same or _number(job) > struck["attempt"]:
            return self._result("fail", "drill_not_adopted", at, job)
        further = job["status"] == "running" and float(job.get("progress") or 0) > max(
            float(struck["progress"]), 0.0
        )
        if job["status"] not in ENDED and not further:
            return None
        if job["status"] not in ("running", "completed"):
            return self._result("fail", "drill_not_recovered", at, job)
        result = self._result("pass", "drill_adopted", at, job)
        found, gone = formatting.epoch(adopted[-1]["at"]), formatting.epoch(struck["at"])
        return {**result, "recovery_s": round((found or 0.0) - (gone or 0.0), 3)}

    def _went_back(self, struck: dict[str, Any]) -> bool:
        """Diagnosed as divergence, and gone on from a checkpoint before the bad step, with a
        lower learning rate where the job has one that can be changed."""
        [first] = [
            one for one in self._client.attempts(self._clone) if one["number"] == struck["attempt"]
        ]
        category = (first.get("diagnosis") or {}).get("category")
        strategy = (first.get("plan") or {}).get("strategy")
        if (category, strategy) != ("nan", "restart_from_checkpoint"):
            return False
        chosen = [
            one["params"]["step"]
            for one in self._client.events(self._clone)
            if one["code"] == "checkpoint_chosen"
        ]
        return bool(chosen) and chosen[0] is not None and chosen[0] < struck["bad_step"]

    def _strike(self, after: float) -> dict[str, Any] | None:
        """None when it ended, or the time is over, before the fault could be done."""
        up_since: float | None = None
        while time.monotonic() < self._deadline:
            job = self._client.get(self._clone)
            if job["status"] in ENDED:
                return None
            if job["status"] == "running" and up_since is None:
                up_since = time.monotonic()
            if up_since is not None and time.monotonic() - up_since >= after:
                try:
                    return self._client.strike_drill(self._clone)
                except errors.DrillTooEarly:
                    pass
                except errors.AlreadyEnded:
                    return None
            time.sleep(_LOOK_S)
        return None

    def _is_past(self, job: dict[str, Any], struck: dict[str, Any]) -> bool:
        """A later attempt has come further than the one that the fault was done to, whose last
        progress is still told when the later one begins."""
        if job["status"] != "running" or _number(job) <= int(struck["attempt"]):
            return False
        now = float(job.get("progress") or 0.0)
        if self._reached is None:
            self._reached = max(float(struck["progress"]), now)
        return 0 < self._reached < now

    def _is_noticed(self) -> bool:
        return any(
            alert.get("code") == "stalled_training"
            for alert in self._client.alerts(job=self._clone)
        )

    def _result(
        self, verdict: str, code: str, at: float | None = None, job: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        found = job or self._client.get(self._clone)
        return {
            "fault": self._fault,
            "job_id": self._clone,
            "verdict": verdict,
            "code": code,
            "recovery_s": None if at is None else round(time.monotonic() - at, 3),
            "status": found["status"],
            "reason": found.get("reason"),
            "attempts": _number(found),
        }

    def clean_up(self) -> None:
        """The clone is thrown away; its record stays for 'runyard explain'."""
        with contextlib.suppress(errors.RunyardError):  # it has ended, or the server is gone
            self._client.force_kill(self._clone)

    def _say(self, key: str, **params: Any) -> None:
        if not self._quiet:
            print(wording.say(key, **params), flush=True)


def _number(job: dict[str, Any]) -> int:
    """Of its newest attempt; 0 before the first."""
    return int((job.get("attempt") or {}).get("number", 0))


def _sentence(result: dict[str, Any]) -> str:
    seconds = result["recovery_s"]
    span = "?" if seconds is None else formatting.span(seconds)
    told = wording.say(
        result["code"],
        job=result["job_id"],
        fault=result["fault"],
        span=span,
        attempts=result["attempts"],
        status=wording.status(result["status"]),
        reason=wording.reason(result["reason"]),
    )
    return f"{result['verdict']}: {told}"
