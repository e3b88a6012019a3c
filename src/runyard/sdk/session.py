"""A job held by this process: whatever ends the process ends the job first, then the services.

Everything that can block is done by threads; the one that called only waits for news. So a signal
is never lost, and none can interrupt anything halfway.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from runyard.sdk import errors
from runyard.sdk.cancelling import ANSWER_S
from runyard.sdk.follower import Follower, View
from runyard.sdk.job import Job
from runyard.sdk.job_end import JobEnd
from runyard.sdk.lease import FOR_SERVICES_S, Lease
from runyard.sdk.news import News
from runyard.sdk.plain_view import PlainView
from runyard.sdk.service_group import LocalServices
from runyard.sdk.services import LocalService
from runyard.sdk.taken_signals import TakenSignals, leave

if TYPE_CHECKING:
    from runyard.sdk.client import Client


class Session:
    """Open it with `with`. On leaving, also by an exception, a signal or the interpreter's end,
    the job is cancelled and proven gone (for a bounded time), then the local services stop. A job
    that has ended or was detached is left alone."""

    def __init__(
        self,
        client: Client,
        fields: Mapping[str, Any],
        *,
        local_services: Sequence[LocalService] = (),
        view: View | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        self._client = client
        self._fields = dict(fields)
        self._key = idempotency_key
        self._view = view or PlainView()
        self._news = News()
        self._end = JobEnd(client, self._view, self._news)
        self._services = LocalServices(local_services, self._view, self._service_lost)
        self._signals = TakenSignals(self._noted, self._leaving)
        self._lease: Lease | None = None
        self._owner = 0  # the process that opened it: a fork of it must not end anything
        self._submitting = False
        self._answered = threading.Event()
        self._left_alone = False  # the end was asked for, or is not wanted
        self._failure: errors.LocalServiceFailed | None = None
        self.signal: int | None = None  # the one that ended it
        self.job = Job(client, {})

    def __enter__(self) -> Session:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close()
        if kind is None and self._end.late_signal is not None:
            leave(self._end.late_signal)

    def open(self) -> None:
        """Start the services, submit; whatever goes wrong, nothing is left of either."""
        if self._services and not self._fields.get("lease_s"):
            self._fields["lease_s"] = FOR_SERVICES_S
        self._owner = os.getpid()
        try:
            self._signals.take()
            atexit.register(self._at_exit)
            with self._signals.noted():
                self._opened()
        except BaseException:
            self.close()
            raise

    def follow(self) -> Job:
        """Show the log until the job has ended; LocalServiceFailed when a service was lost."""
        with self._signals.noted():
            self._raise_failure()
            follower = Follower(self._client, self._view)
            self._end.following = True
            self._news.begin("followed", lambda: follower.follow(self.job))
            kind, value = self._news.next()
            if kind == "signal":
                self._leave_for(value)
            if kind == "service":
                self._cancel()
                self._raise_failure()
            self._end.following = False
            if value is None:
                return self.job
            self._lost_sight(value)

    def wait(self, timeout: float | None = None) -> Job:
        """Until the job has ended; WaitTimeout when `timeout` seconds are not enough."""
        self.job.wait(timeout)
        self._raise_failure()
        return self.job

    def detach(self) -> None:
        """Let the job go on without this process. One that needs a local service cannot."""
        if self._services:
            raise errors.BadRequest(
                "The job needs services that end with this process, so it cannot be detached.",
                code="local_services_end",
            )
        self._left_alone = True
        if self._lease is not None:
            self._lease.let_go()

    def close(self) -> None:
        """What leaving the `with` does; a second call does nothing."""
        if self._owner != os.getpid():
            return
        with self._signals.noted():
            try:
                if self._still_wanted_gone():
                    self._cancel()
            finally:
                self._stop_services()
                self._released()

    # opening

    def _opened(self) -> None:
        self._news.begin("opened", self._prepare)
        while True:
            kind, value = self._news.next()
            if kind == "signal":
                self._interrupted(int(value))
            if kind == "opened":
                break
        if isinstance(value, BaseException):
            _raise(value)
        self._raise_failure()

    def _interrupted(self, number: int) -> NoReturn:
        """A signal before the job is known. Its id is awaited, so that no job is lost sight of."""
        self.signal = number
        self._services.give_up()
        answered = self._news.came("opened", ANSWER_S)
        self._left_alone = not self._submitted
        if self._submitted:
            self._leave_for(number)
        if self._submitting and not answered:
            self._view.unanswered()
        leave(number)

    def _prepare(self) -> None:
        self._services.start()
        if self.signal is not None:
            return
        fields = self._fields
        if self._services:
            given = [*(fields.get("services") or ()), *self._services.addresses()]
            fields = {**fields, "services": given}
        self._submitting = True
        try:
            self.job = job = self._client.submit(fields, idempotency_key=self._key)
        finally:
            self._answered.set()
        if self._left_alone:  # nobody waits for it any more
            self._client.cancel(job.id)
            return
        if fields.get("lease_s"):
            self._lease = Lease(self._client, self._view, job, float(fields["lease_s"]))
            self._lease.keep()
        self._view.submitted(job)

    @property
    def _submitted(self) -> bool:
        return "job_id" in self.job.data

    @property
    def _ends_with_us(self) -> bool:
        keeps = self._fields.get("on_lease_lost") == "keep"
        return bool(self._services) or (bool(self._fields.get("lease_s")) and not keeps)

    # ending

    def _leave_for(self, number: int) -> NoReturn:
        self._signals.note_from_now_on()
        self.signal = int(number)
        if number == signal.SIGHUP and not self._ends_with_us:
            self._left_alone = True
            self._view.left_running(self.job)
        else:
            self._cancel(signal.Signals(number).name)
        leave(self.signal)

    def _noted(self, number: int) -> None:
        self._news.tell("signal", number)

    def _leaving(self, number: int) -> None:
        """The terminal is gone while the caller's own code runs."""
        self.signal = number
        if number == signal.SIGHUP and self._submitted and not self._ends_with_us:
            self._left_alone = True
            self._view.left_running(self.job)

    def _lost_sight(self, why: BaseException) -> NoReturn:
        if isinstance(why, errors.RunyardError | OSError) and not self._ends_with_us:
            # The server or our own output is gone: neither is a reason to end the job.
            self._left_alone = True
            self._view.left_running(self.job)
        elif isinstance(why, errors.ServerUnreachable):
            self._left_alone = True
            self._view.left_to_lease(self.job, float(self._fields.get("lease_s") or 0))
        else:
            self._cancel()
        _raise(why)

    def _still_wanted_gone(self) -> bool:
        if self._left_alone or not self._submitted or self.job.ended:
            return False
        with contextlib.suppress(errors.RunyardError):
            self.job.data = self._client.get(self.job.id, timeout=ANSWER_S)
        return not self.job.ended

    def _cancel(self, signal_name: str = "") -> None:
        self._left_alone = True
        self._end.cancel(self.job, signal_name)

    def _stop_services(self) -> None:
        if not self._services:
            return
        forced = self._end.late_signal is not None
        self._news.begin("stopped", self._services.stop)
        while True:
            if forced:
                self._services.force()
            kind, value = self._news.next()
            if kind == "stopped" or (kind == "signal" and forced):
                return  # their guards go on without us
            if kind == "signal":
                self._end.late_signal, forced = int(value), True

    def _released(self) -> None:
        self._owner = 0
        if self._lease is not None:
            self._lease.let_go()
        if self._end.following:  # a thread may still have something to show
            self._view.close()
        atexit.unregister(self._at_exit)
        self._signals.give_back()

    def _at_exit(self) -> None:
        """The interpreter ends: no thread can be started any more, so this one does it all."""
        if self._owner != os.getpid():
            return
        self._owner = 0
        try:
            if self._submitting:
                self._answered.wait(ANSWER_S)
            if self._still_wanted_gone():
                self._left_alone = True
                self._end.cancel_without_threads(self.job)
        finally:
            self._services.stop()

    def _service_lost(self, failure: errors.LocalServiceFailed) -> None:
        """Called by the thread that watches it: the caller's own code may not be waiting."""
        self._failure = failure
        if self._submitted:
            params = failure.params
            self._view.service_lost(params["name"], params["exit_code"], self.job.id)
            with contextlib.suppress(errors.RunyardError):
                self._client.cancel(self.job.id, timeout=ANSWER_S)
        self._news.tell("service")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _raise(error: BaseException) -> NoReturn:
    try:
        raise error
    finally:
        del error  # else it would hold this frame, which holds it
