"""A job held by this process: whatever ends the process ends the job first, then the services.

Everything that can block is done by threads; the one that called only waits for news. So a signal
is never lost, and none can interrupt anything halfway.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from runyard.sdk import errors
from runyard.sdk.cancelling import ANSWER_S, BEYOND_GRACE_S, DEFAULT_GRACE_S, Outcome, cancel
from runyard.sdk.follower import Follower, View
from runyard.sdk.job import Job
from runyard.sdk.lease import FOR_SERVICES_S, Lease
from runyard.sdk.plain_view import PlainView
from runyard.sdk.service_group import LocalServices
from runyard.sdk.services import LocalService
from runyard.sdk.taken_signals import TakenSignals, leave

if TYPE_CHECKING:
    from runyard.sdk.client import Client

_LAST_LINES_S = 2.0


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
        self._news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._services = LocalServices(local_services, self._view, self._service_lost)
        # SimpleQueue: its put may be called inside its own get.
        note = self._news.put
        self._signals = TakenSignals(lambda number: note(("signal", number)), self._leaving)
        self._lease: Lease | None = None
        self._owner = 0  # the process that opened it: a fork of it must not end anything
        self._submitting = False
        self._follow_over = True
        self._left_alone = False  # the end was asked for, or is not wanted
        self._late: int | None = None  # a signal that came while the end was under way
        self._failure: errors.LocalServiceFailed | None = None
        self.signal: int | None = None  # the one that ended it
        self.job = Job(client, {})

    def __enter__(self) -> Session:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.close()
        if kind is None and self._late is not None:
            leave(self._late)

    def open(self) -> None:
        """Start the services, submit; whatever goes wrong, nothing is left of either."""
        if self._services and not self._fields.get("lease_s"):
            self._fields["lease_s"] = FOR_SERVICES_S
        self._owner = os.getpid()
        self._signals.take()
        atexit.register(self._at_exit)
        try:
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
            self._follow_over = False
            self._begin("followed", lambda: follower.follow(self.job))
            kind, value = self._news.get()
            if kind == "signal":
                self._leave_for(value)
            if kind == "service":
                self._cancel("")
                self._raise_failure()
            self._follow_over = True
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
                    self._cancel("")
            finally:
                self._stop_services()
                self._released()

    # opening

    def _opened(self) -> None:
        self._begin("opened", self._prepare)
        kind, value = self._news.get()
        if kind == "signal":
            self._interrupted(int(value))
        if isinstance(value, BaseException):
            _raise(value)

    def _interrupted(self, number: int) -> NoReturn:
        """A signal before the job is known. Its id is awaited, so that no job is lost sight of."""
        self.signal = number
        self._services.give_up()
        answered = self._await("opened", ANSWER_S)
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
        self.job = job = self._client.submit(fields, idempotency_key=self._key)
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
        self.signal = int(number)
        if number == signal.SIGHUP and not self._ends_with_us:
            self._left_alone = True
            self._view.left_running(self.job)
        else:
            self._cancel(signal.Signals(number).name)
        leave(self.signal)

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
            self._cancel("")
        _raise(why)

    def _still_wanted_gone(self) -> bool:
        if self._left_alone or not self._submitted or self.job.ended:
            return False
        with contextlib.suppress(errors.RunyardError):
            self.job.data = self._client.get(self.job.id, timeout=ANSWER_S)
        return not self.job.ended

    def _cancel(self, signal_name: str) -> None:
        """Until it is proven gone; another signal kills it without grace, a third one leaves."""
        self._left_alone = True
        job = self.job
        self._view.cancelling(job, signal_name)
        outcome = self._ended(job, _patience(job), force=False)
        if outcome is None:
            self._view.killing(job)
            outcome = self._ended(job, BEYOND_GRACE_S, force=True)
        self._tell(outcome or Outcome("unproven"))

    def _ended(self, job: Job, patience_s: float, *, force: bool) -> Outcome | None:
        """How the cancel went; None when another signal came meanwhile."""
        asked = Job(self._client, job.data)  # the follower still writes to the other
        news = "killed" if force else "cancelled"
        self._begin(news, lambda: cancel(self._client, asked, patience_s, force=force))
        while True:
            kind, value = self._news.get()
            self._follow_over = self._follow_over or kind == "followed"
            if kind == "signal" and value != signal.SIGHUP:
                self._late = int(value)
                return None
            if kind == news:
                if not isinstance(value, Outcome):
                    return Outcome("unproven")
                if value.kind == "gone" and not self._follow_over:
                    self._follow_over = self._await("followed", _LAST_LINES_S)
                job.data = asked.data
                return value

    def _tell(self, outcome: Outcome) -> None:
        if outcome.kind == "gone":
            self._view.gone(self.job)
        elif outcome.kind == "refused" and outcome.error is not None:
            self._view.refused(self.job, outcome.error)
        elif outcome.kind == "unreachable":
            self._view.unreachable(self.job)
        else:
            self._view.unproven(self.job)

    def _stop_services(self) -> None:
        if not self._services:
            return
        self._begin("stopped", self._services.stop)
        while True:
            kind, value = self._news.get()
            if kind == "stopped":
                return
            if kind == "signal":
                self._late = int(value)
                self._services.force()

    def _released(self) -> None:
        self._owner = 0
        if self._lease is not None:
            self._lease.let_go()
        if not self._follow_over:  # a thread may still have something to show
            self._view.close()
        atexit.unregister(self._at_exit)
        self._signals.give_back()

    def _at_exit(self) -> None:
        """The interpreter ends: no thread can be started any more, so this one does it all."""
        if self._owner != os.getpid():
            return
        self._owner = 0
        try:
            if self._still_wanted_gone():
                self._left_alone = True
                self._view.cancelling(self.job, "")
                self._tell(self._ended_here())
        finally:
            self._services.stop()

    def _ended_here(self) -> Outcome:
        for patience, force in ((_patience(self.job), False), (BEYOND_GRACE_S, True)):
            # Nothing notes signals here: they raise.
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                return cancel(self._client, self.job, patience, force=force)
        return Outcome("unproven")

    def _service_lost(self, failure: errors.LocalServiceFailed) -> None:
        """Called by the thread that watches it: the caller's own code may not be waiting."""
        self._failure = failure
        if self._submitted:
            params = failure.params
            self._view.service_lost(params["name"], params["exit_code"], self.job.id)
            with contextlib.suppress(errors.RunyardError):
                self._client.cancel(self.job.id, timeout=ANSWER_S)
        self._news.put(("service", None))

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # news

    def _await(self, news: str, seconds: float) -> bool:
        """Whether that came before another signal, and within so many seconds."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(queue.Empty):
            while (left := deadline - time.monotonic()) > 0:
                kind = self._news.get(timeout=left)[0]
                if kind in (news, "signal"):
                    return kind == news
        return False

    def _begin(self, news: str, work: Callable[[], Any]) -> None:
        """Do it in a thread that does not keep the process alive; its result or error is news."""

        def told() -> None:
            try:
                self._news.put((news, work()))
            except BaseException as error:
                self._news.put((news, error))

        threading.Thread(target=told, name=f"runyard-{news}", daemon=True).start()


def _patience(job: Job) -> float:
    """How long a cancel may take: the job's grace, and a little for the proof."""
    grace_s = job.data.get("grace_s")
    return (DEFAULT_GRACE_S if grace_s is None else float(grace_s)) + BEYOND_GRACE_S


def _raise(error: BaseException) -> NoReturn:
    try:
        raise error
    finally:
        del error  # else it would hold this frame, which holds it
