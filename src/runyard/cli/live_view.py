"""What `run` and `demo` show: the log on stdout exactly as written, everything else on stderr."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from runyard.cli import formatting, receipts, suggestions, tables, wording
from runyard.sdk import errors, services
from runyard.sdk.follower import View
from runyard.sdk.job import Job

# Parameters of reasons that are measured anew at every look.
_MOVING = ("left_s", "bytes_done", "value", "free")


class LiveView(View):
    def __init__(self) -> None:
        self._line_shown = False
        self._told: tuple[object, ...] = ()
        self._at_line_start = True
        self._closed = False

    def submitted(self, job: Job) -> None:
        self.say(wording.say("submitted", job=job.id))
        for warning in job.data.get("warnings") or ():
            self.say(f"runyard: {wording.warning(warning)}")
        if text := suggestions.told(job.data.get("suggestion")):
            self.say(f"runyard: {text}")

    def waiting(self, job: Job) -> None:
        text = waiting_line(job.data)
        if os.isatty(2):
            spinner = "|/-\\"[int(time.monotonic() * 8) % 4]
            self._show(f"\r\x1b[K{spinner} {formatting.cut(text, tables.terminal_width() - 3)}")
            self._line_shown = True
            return
        standing = _standing(job.data)
        if standing != self._told:
            self.say(text)
        self._told = standing

    def log(self, data: bytes) -> None:
        self._clear()
        if not self._closed:
            _write(1, data)
        self._at_line_start = data.endswith(b"\n")

    def attempt_ended(self, job: Job, attempt: dict[str, Any]) -> None:
        text = wording.say(
            "attempt_ended",
            number=attempt.get("number"),
            how=_how(attempt),
            reason=wording.reason(job.reason) or wording.status(job.status),
        )
        waits = (job.reason or {}).get("code") == "retry_delay"
        if waits and attempt.get("number") == 1:  # who is new here did not ask for it
            text += wording.say("retries_hint")
        self.say(text)

    def server_lost(self, patience_s: float) -> None:
        self.say(wording.say("server_lost", span=formatting.span(patience_s)))

    def server_back(self) -> None:
        self.say(wording.say("server_back"))

    def left_running(self, job: Job) -> None:
        self.say(wording.say("left_running", job=job.id))
        self.say(wording.say("follow_again", job=job.id))

    def cancelling(self, job: Job, signal_name: str) -> None:
        key = "Ctrl-C" if signal_name == "SIGINT" else signal_name
        words = "cancelling" if key else "cancelling_now"
        self.say(wording.say(words, job=job.id, signal=key))

    def killing(self, job: Job) -> None:
        self.say(wording.say("killing", job=job.id))

    def refused(self, job: Job, error: errors.RunyardError) -> None:
        why = wording.error(error.error_code, error.params, error.message)
        self.say(wording.say("cancel_refused", job=job.id, why=why))

    def unreachable(self, job: Job) -> None:
        self.say(wording.say("cancel_unreachable", job=job.id))
        self.say(wording.say("cancel_later", job=job.id))

    def unproven(self, job: Job) -> None:
        self.say(wording.say("cancel_unproven", job=job.id))

    def gone(self, job: Job) -> None:
        self.ended(job)

    def unanswered(self) -> None:
        self.say(wording.say("submit_unanswered"))

    def left_to_lease(self, job: Job, lease_s: float) -> None:
        self.say(wording.say("left_to_lease", job=job.id, span=formatting.span(lease_s)))

    def lease_failing(self, job: Job, lease_s: float) -> None:
        self.say(wording.say("lease_failing", job=job.id, span=formatting.span(lease_s)))

    def service_starting(self, name: str, log: str) -> None:
        self.say(wording.say("service_starting", name=name, log=log))

    def service_ready(self, name: str, url: str) -> None:
        self.say(wording.say("service_ready", name=name, url=url))

    def service_restarting(self, name: str, exit_code: int) -> None:
        self.say(wording.say("service_restarting", name=name, how=_how_ended(exit_code)))

    def service_lost(self, name: str, exit_code: int, job_id: str) -> None:
        self.say(wording.say("service_lost", name=name, how=_how_ended(exit_code), job=job_id))

    def service_stopped(self, name: str, seconds: float) -> None:
        self.say(wording.say("service_stopped", name=name, seconds=f"{seconds:.2f}"))

    def service_stuck(self, name: str) -> None:
        self.say(wording.say("service_stuck", name=name))

    def ended(self, job: Job) -> None:
        """The last line: how it ended, after how long, and why."""
        self.say(ended_line(job.data))

    def close(self) -> None:
        self._closed = True

    def say(self, text: str) -> None:
        """One line on stderr. A terminal that went away is no reason to fail."""
        self._clear()
        if not self._at_line_start and os.isatty(1) and os.isatty(2):
            text = "\n" + text
        self._at_line_start = True
        self._show(text + "\n")

    def _clear(self) -> None:
        if self._line_shown:
            self._line_shown = False
            self._show("\r\x1b[K")

    def _show(self, text: str) -> None:
        if not self._closed:
            with contextlib.suppress(OSError):
                _write(2, text.encode("utf-8", "replace"))


def _write(descriptor: int, data: bytes) -> None:
    """Unbuffered: a thread that is left behind must not hold a lock of sys.stdout at the exit."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _how_ended(exit_code: int) -> str:
    signal = services.signal_of(exit_code)
    key = "service_signal" if signal else "service_exited"
    return wording.say(key, signal=signal, exit_code=exit_code)


def _how(attempt: dict[str, Any]) -> str:
    """How an attempt ended, with its exit code where that is what failed."""
    end = str(attempt.get("end") or attempt.get("status"))
    how = wording.status(end).replace("_", " ")
    if end != "failed" or attempt.get("exit_code") is None:
        return how
    code = {"code": "exit_code", "params": {"code": attempt["exit_code"]}}
    return f"{how} ({wording.reason(code)})"


def _standing(data: dict[str, Any]) -> tuple[object, ...]:
    """What it waits for, without what moves all the time: a line is worth a change only."""
    wait = data.get("wait") or {}
    reason = data.get("reason") or wait
    params = reason.get("params") or {}
    lasting = {name: value for name, value in params.items() if name not in _MOVING}
    return data.get("status"), data.get("stage"), reason.get("code"), lasting, wait.get("position")


def waiting_line(data: dict[str, Any]) -> str:
    """pending: 2 of at most 2 jobs run, place 3, may start in 2m to 5m."""
    wait = data.get("wait") or {}
    reason = wording.reason(data.get("reason") or wait) or wording.status(
        str(data.get("stage") or "")
    )
    status = wording.status(str(data.get("status")))
    parts = [wording.say("waiting", status=status, reason=reason) if reason else status]
    if wait.get("position"):
        parts.append(wording.say("position", position=wait["position"]))
    estimate = estimate_text(wait)
    return ", ".join([*parts, estimate] if estimate else parts)


def estimate_text(wait: dict[str, Any]) -> str:
    low, high = (
        formatting.epoch(wait.get("est_start_low")),
        formatting.epoch(wait.get("est_start_high")),
    )
    if low is None and high is None:
        return ""
    now = time.time()
    low, high = low or now, high or low or now
    if high - now < 1:
        return ""
    soonest, latest = formatting.span(low - now), formatting.span(high - now)
    if soonest == latest:
        return wording.say("est_start_at", span=latest)
    return wording.say("est_start", low=soonest, high=latest)


def ended_line(data: dict[str, Any]) -> str:
    job, status = data.get("job_id"), wording.status(str(data.get("status")))
    if data.get("status") == "cancelled" and data.get("receipt"):
        return receipts.summary(str(job), data)
    begun = formatting.epoch(data.get("started_at") or data.get("submitted_at"))
    over = formatting.epoch(data.get("completed_at")) or time.time()
    span = formatting.span(over - begun if begun is not None else None)
    reason = wording.reason(data.get("reason"))
    key = "ended_why" if reason and data.get("status") != "completed" else "ended"
    return wording.say(key, job=job, status=status, span=span, reason=reason)
