"""`run`: submit, follow, and end the job when this process is told to end.

SIGINT and SIGTERM cancel the job and wait, for a bounded time, until it is proven gone; a second
one kills it without grace, a third one leaves at once. SIGHUP and a lost server leave it running.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from runyard.sdk import errors
from runyard.sdk.cancelling import BEYOND_GRACE_S, DEFAULT_GRACE_S, Outcome, cancel
from runyard.sdk.follower import Follower, View
from runyard.sdk.job import Job

if TYPE_CHECKING:
    from runyard.sdk.client import Client

_LAST_LINES_S = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Session:
    """One job, run as if it ran in this terminal.

    Everything that can block is done by threads; the one that called `run` only waits for news.
    So a signal is never lost, and none can interrupt anything halfway.
    """

    def __init__(self, client: Client, view: View) -> None:
        self._client = client
        self._view = view
        self._news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._follow_over = False
        self.signal: int | None = None  # the one that ended it
        self.job = Job(client, {})

    def run(self, fields: Mapping[str, Any], *, idempotency_key: str | None = None) -> int:
        """Submit and follow to the end; the exit code this process should end with."""
        with self._signals_noted():
            self.job = self._client.submit(fields, idempotency_key=idempotency_key)
            self._view.submitted(self.job)
            with _Lease(self._client, self.job, fields.get("lease_s")):
                return self._followed(self.job)

    def _followed(self, job: Job) -> int:
        follower = Follower(self._client, self._view)
        self._begin("followed", lambda: follower.follow(job))
        kind, value = self._news.get()
        if kind == "signal":
            self.signal = int(value)
            if self.signal == signal.SIGHUP:
                self._view.left_running(job)
            else:
                self._cancel(job, self.signal)
            self._view.close()
            return 128 + self.signal
        if value is None:
            return job.exit_code
        if isinstance(value, (errors.RunyardError, OSError)):
            # The server or our own output is gone: neither is a reason to end the job.
            self._view.left_running(job)
        else:
            # Whatever ends this client in an unforeseen way ends what it was running as well.
            self._cancel(job, signal.SIGTERM)
        try:
            raise value
        finally:
            del value  # else it would hold this frame, which holds it

    def _cancel(self, job: Job, number: int) -> None:
        grace_s = job.data.get("grace_s")
        patience_s = (DEFAULT_GRACE_S if grace_s is None else float(grace_s)) + BEYOND_GRACE_S
        self._view.cancelling(job, signal.Signals(number).name)
        outcome = self._ended(job, patience_s, force=False)
        if outcome is None:
            self._view.killing(job)
            outcome = self._ended(job, BEYOND_GRACE_S, force=True)
        self._tell(job, outcome or Outcome("unproven"))

    def _ended(self, job: Job, patience_s: float, *, force: bool) -> Outcome | None:
        """How the cancel went; None when another signal came meanwhile."""
        asked = Job(self._client, job.data)  # the follower still writes to the other
        news = "killed" if force else "cancelled"
        self._begin(news, lambda: cancel(self._client, asked, patience_s, force=force))
        while True:
            kind, value = self._news.get()
            self._follow_over = self._follow_over or kind == "followed"
            if kind == "signal" and value != signal.SIGHUP:
                return None
            if kind == news:
                if not isinstance(value, Outcome):
                    return Outcome("unproven")
                if value.kind == "gone":
                    self._await_last_lines()
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

    def _await_last_lines(self) -> None:
        """What the job said while it ended is still on its way to the terminal."""
        deadline = time.monotonic() + _LAST_LINES_S
        with contextlib.suppress(queue.Empty):
            while not self._follow_over and (left := deadline - time.monotonic()) > 0:
                if self._news.get(timeout=left)[0] in ("followed", "signal"):
                    return

    def _begin(self, news: str, work: Callable[[], Any]) -> None:
        """Do it in a thread that does not keep the process alive; its result or error is news."""

        def told() -> None:
            try:
                self._news.put((news, work()))
            except BaseException as error:
                self._news.put((news, error))

        threading.Thread(target=told, name=f"runyard-{news}", daemon=True).start()

    @contextlib.contextmanager
    def _signals_noted(self) -> Iterator[None]:
        """From before the submit on, so that a job that was accepted is never lost sight of."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in before.items():
            # nohup and shells that start background jobs set "ignore": that is respected.
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._note)
        try:
            yield
        finally:
            for number, handler in before.items():
                if handler is not None:
                    signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._news.put(("signal", number))  # SimpleQueue: may be called inside its own get


class _Lease:
    """Renews the job's lease while this process lives."""

    def __init__(self, client: Client, job: Job, lease_s: Any) -> None:
        self._client = client
        self._job_id = job.id
        self._every_s = float(lease_s) / 3 if lease_s else 0.0
        self._over = threading.Event()

    def __enter__(self) -> None:
        if self._every_s:
            threading.Thread(target=self._renew, name="runyard-lease", daemon=True).start()

    def __exit__(self, *error: object) -> None:
        self._over.set()

    def _renew(self) -> None:
        while not self._over.wait(self._every_s):
            # A server that is away counts leases anew when it is back.
            with contextlib.suppress(errors.RunyardError):
                self._client.renew_lease(self._job_id, timeout=max(1.0, self._every_s))


class _Plain(View):
    """For `Client.run`: the log to stdout, nothing else."""

    def log(self, data: bytes) -> None:
        raw = getattr(sys.stdout, "buffer", None)
        if raw is None:  # a notebook
            sys.stdout.write(data.decode("utf-8", "replace"))
        else:
            raw.write(data)
        sys.stdout.flush()


def run(client: Client, fields: Mapping[str, Any]) -> Job:
    """For `Client.run`: as the CLI does it; a signal ends in the exception Python has for it."""
    session = Session(client, _Plain())
    code = session.run(fields)
    if session.signal == signal.SIGINT:
        raise KeyboardInterrupt
    if session.signal is not None:
        raise SystemExit(code)
    return session.job
