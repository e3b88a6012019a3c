"""Ending a session's job: cancel, the proof, and what more signals do meanwhile."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

from runyard.sdk.cancelling import BEYOND_GRACE_S, DEFAULT_GRACE_S, Outcome, cancel
from runyard.sdk.follower import View
from runyard.sdk.job import Job
from runyard.sdk.news import News

if TYPE_CHECKING:
    from runyard.sdk.client import Client

_LAST_LINES_S = 2.0


class JobEnd:
    def __init__(self, client: Client, view: View, news: News) -> None:
        self._client = client
        self._view = view
        self._news = news
        self.following = False  # whether a thread may still show lines of the log
        self.late_signal: int | None = None  # one that came while the end was under way

    def cancel(self, job: Job, signal_name: str = "") -> None:
        """Until it is proven gone; another signal kills it without grace, a third one leaves."""
        self._view.cancelling(job, signal_name)
        outcome = self._ended(job, _patience_s(job), force=False)
        if outcome is None:
            self._view.killing(job)
            outcome = self._ended(job, BEYOND_GRACE_S, force=True)
        self._tell(job, outcome or Outcome("unproven"))

    def cancel_without_threads(self, job: Job) -> None:
        """At the interpreter's end, where no thread can be started and signals raise."""
        self._view.cancelling(job, "")
        for patience_s, force in ((_patience_s(job), False), (BEYOND_GRACE_S, True)):
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                self._tell(job, cancel(self._client, job, patience_s, force=force))
                return
        self._tell(job, Outcome("unproven"))

    def _ended(self, job: Job, patience_s: float, *, force: bool) -> Outcome | None:
        """How the cancel went; None when another signal came meanwhile."""
        asked = Job(self._client, job.data)  # the follower still writes to the other
        kind = "killed" if force else "cancelled"
        self._news.begin(kind, lambda: cancel(self._client, asked, patience_s, force=force))
        while True:
            came, value = self._news.next()
            self.following = self.following and came != "followed"
            if came == "signal" and value != signal.SIGHUP:
                self.late_signal = int(value)
                return None
            if came == kind:
                if not isinstance(value, Outcome):
                    return Outcome("unproven")
                if value.kind == "gone" and self.following:
                    # What it said while it ended is still on its way.
                    self.following = not self._news.came("followed", _LAST_LINES_S)
                job.data = asked.data
                return value

    def _tell(self, job: Job, outcome: Outcome) -> None:
        if outcome.kind == "gone":
            self._view.gone(job)
        elif outcome.kind == "refused" and outcome.error is not None:
            self._view.refused(job, outcome.error)
        elif outcome.kind == "unreachable":
            self._view.unreachable(job)
        else:
            self._view.unproven(job)


def _patience_s(job: Job) -> float:
    """How long a cancel may take: the job's grace, and a little for the proof."""
    grace_s = job.data.get("grace_s")
    return (DEFAULT_GRACE_S if grace_s is None else float(grace_s)) + BEYOND_GRACE_S
