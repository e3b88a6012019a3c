"""`run`: submit, follow, and end the job when this process is told to end.

SIGINT and SIGTERM cancel the job and wait, for a bounded time, until it is proven gone; a second
one kills it without grace. SIGHUP and a lost server leave it running.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from runyard.sdk import errors
from runyard.sdk.follower import Follower, View
from runyard.sdk.job import ENDED, Job

if TYPE_CHECKING:
    from runyard.sdk.client import Client

_ANSWER_S = 4.0  # a server that is there answers a cancel within this
_TRIES = 3
_BEYOND_GRACE_S = 10.0
_DEFAULT_GRACE_S = 40.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal came. Not an Exception, so that nothing on the way mistakes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Session:
    """One job, run as if it ran in this terminal."""

    def __init__(self, client: Client, view: View) -> None:
        self._client = client
        self._view = view
        self._may_raise = False
        self._waiting: int | None = None
        self.signal: int | None = None  # the one that ended it
        self.job = Job(client, {})

    def run(self, fields: Mapping[str, Any], *, idempotency_key: str | None = None) -> int:
        """Submit and follow to the end; the exit code this process should end with."""
        with self._signals_caught():
            job = self._client.submit(fields, idempotency_key=idempotency_key)
            self.job = job
            self._view.submitted(job)
            with _Lease(self._client, job, fields.get("lease_s")):
                return self._followed(job)

    def _followed(self, job: Job) -> int:
        try:
            with self._raising():
                Follower(self._client, self._view).follow(job)
            return job.exit_code
        except Interrupted as interrupted:
            self.signal = interrupted.number
            if interrupted.number == signal.SIGHUP:
                self._view.left_running(job)
            else:
                self._cancel(job, interrupted.number)
            return 128 + interrupted.number
        except (errors.ServerUnreachable, BrokenPipeError):
            self._view.left_running(job)
            raise
        except BaseException:
            # Whatever ends this client in an unforeseen way ends what it was running as well.
            self._cancel(job, signal.SIGTERM)
            raise

    def _cancel(self, job: Job, number: int) -> None:
        grace_s = job.data.get("grace_s")
        patience_s = (_DEFAULT_GRACE_S if grace_s is None else float(grace_s)) + _BEYOND_GRACE_S
        try:
            with self._raising():
                self._view.cancelling(job, signal.Signals(number).name)
                self._end(job, patience_s, force=False)
        except Interrupted:
            try:
                with self._raising():
                    self._view.killing(job)
                    self._end(job, _BEYOND_GRACE_S, force=True)
            except Interrupted:
                self._view.unproven(job)

    def _end(self, job: Job, patience_s: float, *, force: bool) -> None:
        """Ask for the end, then wait for the proof."""
        deadline = time.monotonic() + patience_s
        ask = self._client.force_kill if force else self._client.cancel
        for pause_s in [0.3] * (_TRIES - 1) + [0.0]:
            try:
                job.data.update(ask(job.id, timeout=_ANSWER_S))
                break
            except errors.ServerUnreachable:
                self._client.close()
                time.sleep(pause_s)
            except errors.AlreadyEnded:
                break
            except errors.RunyardError as refused:
                self._view.refused(job, refused)
                return
        else:
            self._view.unreachable(job)
            return
        self._await_proof(job, deadline)

    def _await_proof(self, job: Job, deadline: float) -> None:
        lost_at: float | None = None
        while job.status not in ENDED:
            left = deadline - time.monotonic()
            if left <= 0 or (lost_at is not None and time.monotonic() - lost_at > _ANSWER_S):
                self._view.unproven(job)
                return
            try:
                job.data = self._client.wait_once(job.id, min(left, _ANSWER_S)).data
                lost_at = None
            except errors.ServerUnreachable:
                lost_at = lost_at or time.monotonic()
                time.sleep(0.2)
        self._view.gone(job)

    @contextlib.contextmanager
    def _signals_caught(self) -> Iterator[None]:
        """While the submit is on its way a signal is only noted: the job must stay in sight."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number, handler in before.items():
            # nohup and shells that start background jobs set "ignore": that is respected.
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                if handler is not None:
                    signal.signal(number, handler)

    @contextlib.contextmanager
    def _raising(self) -> Iterator[None]:
        """Inside, a signal interrupts whatever is being waited for."""
        self._may_raise = True
        try:
            if self._waiting is not None:
                number, self._waiting = self._waiting, None
                raise Interrupted(number)
            yield
        finally:
            self._may_raise = False

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._may_raise:
            self._may_raise = False
            raise Interrupted(number)
        self._waiting = number


class _Lease:
    """Renews the job's lease while this process lives."""

    def __init__(self, client: Client, job: Job, lease_s: Any) -> None:
        self._client = client
        self._job = job
        self._every_s = float(lease_s) / 3 if lease_s else None
        self._over = threading.Event()

    def __enter__(self) -> None:
        if self._every_s is not None:
            threading.Thread(target=self._renew, name="runyard-lease", daemon=True).start()

    def __exit__(self, *error: object) -> None:
        self._over.set()

    def _renew(self) -> None:
        assert self._every_s is not None
        while not self._over.wait(self._every_s):
            # A server that is away counts leases anew when it is back.
            with contextlib.suppress(errors.RunyardError):
                self._client.renew_lease(self._job.id, timeout=max(1.0, self._every_s))


class _Plain(View):
    """For `Client.run`: the log to stdout, nothing else."""

    def log(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def run(client: Client, fields: Mapping[str, Any]) -> Job:
    """For `Client.run`: as the CLI does it; a signal ends in the exception Python has for it."""
    session = Session(client, _Plain())
    code = session.run(fields)
    if session.signal == signal.SIGINT:
        raise KeyboardInterrupt
    if session.signal is not None:
        raise SystemExit(code)
    return session.job
