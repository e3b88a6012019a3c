"""runyard drill: does a job really recover? A fault is done to a throwaway clone of it, and what
becomes of that is told: 0 and pass, or 1 and fail."""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import Any

from runyard.cli import amounts, exit_codes, formatting, options, tables, wording
from runyard.sdk import errors
from runyard.sdk.client import Client
from runyard.sdk.job import ENDED

# nan and server are asked for too, and answered with why they cannot be had.
FAULTS = ("kill9", "oom", "nan", "disk", "hang", "corrupt", "server")
_LOOK_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("job", metavar="JOB")
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

    def run(self, after: float) -> dict[str, Any]:
        self._say("drill_begun", job=self._clone, fault=self._fault)
        struck = self._strike(after)
        if struck is None:
            return self._result("fail", "drill_not_struck")
        at = time.monotonic()
        self._say("drill_struck", job=self._clone, fault=self._fault)
        while time.monotonic() < self._deadline:
            job = self._client.get(self._clone)
            if self._fault == "hang" and self._is_noticed():
                return self._result("pass", "drill_noticed", at)
            if self._is_past(job, struck):
                return self._result("pass", "drill_recovered", at, job)
            if job["status"] in ENDED:
                felt = (job.get("attempt") or {}).get("number", 1) > struck["attempt"]
                code = "drill_recovered" if felt else "drill_not_felt"
                if job["status"] == "completed":
                    return self._result("pass" if felt else "fail", code, at, job)
                return self._result("fail", "drill_not_recovered", at, job)
            time.sleep(_LOOK_S)
        return self._result("fail", "drill_timed_out", at, self._client.get(self._clone))

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
        """A later attempt has come further than the one that the fault was done to."""
        number = int((job.get("attempt") or {}).get("number", 0))
        before, now = float(struck["progress"]), float(job.get("progress") or 0.0)
        later = job["status"] == "running" and number > int(struck["attempt"])
        return later and 0 < before < now

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
            "attempts": (found.get("attempt") or {}).get("number", 0),
        }

    def clean_up(self) -> None:
        """The clone is thrown away; its record stays for 'runyard explain'."""
        with contextlib.suppress(errors.RunyardError):  # it has ended, or the server is gone
            self._client.force_kill(self._clone)

    def _say(self, key: str, **params: Any) -> None:
        if not self._quiet:
            print(wording.say(key, **params), flush=True)


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
