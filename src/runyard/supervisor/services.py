"""The services of an attempt: started before its main process, watched beside it, ended after it.

A service that exits with 0 says that it is done, which is noted. One that fails is started again
if it is declared so; else, and when that does not help, the job fails with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from runyard.supervisor import end_record, ending, log_bound, protocol, stopping
from runyard.supervisor.host import SIGNALS
from runyard.supervisor.service import READY, RESTARTING, STARTING, Failure, Service

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt

FAILED = "service_failed"
Refusal = tuple[str, dict[str, Any]]


class Services:
    __slots__ = ("_services", "failure")

    def __init__(self, specs: list[dict[str, Any]]) -> None:
        self._services = [Service(spec) for spec in specs]
        self.failure: Failure | None = None

    def start(self, attempt: Attempt) -> Refusal | None:
        """All at once, then until each is ready; the cause and its detail if one does not get
        there, or if the attempt is stopped meanwhile. A signal ends the wait at once."""
        attempt.next_beat = time.monotonic() + protocol.HEARTBEAT_S
        for service in self._services:
            try:
                failure = service.launch(attempt)
            except OSError as error:
                return end_record.unrecordable(error)
            if failure is not None:
                self._fail(attempt, {**service.failure(attempt, ""), **failure})
                break
        while self.failure is None and attempt.stop is None:
            with contextlib.suppress(ChildProcessError):
                ending.main_ended(attempt)
            now = time.monotonic()
            due = self._step(attempt, now)
            if self.failure is not None:
                break
            if all(service.state == READY for service in self._services):
                attempt.reached("services_ready")
                return None
            if now >= attempt.next_beat:
                attempt.beat(now)
            pause = min(due, attempt.next_beat) - time.monotonic()
            attempt.hear(signal.sigtimedwait(SIGNALS, max(0.0, pause)))
        if attempt.stop is not None:
            return "cancelled_before_start", {}
        return FAILED, {"service_failure": self.failure}

    def step(self, attempt: Attempt, now: float) -> float:
        """What is due while main runs; when to come again. Nothing once the end has begun."""
        if attempt.stop is not None:
            return float("inf")
        due = self._step(attempt, now)
        if self.failure is not None:
            attempt.begin_stop(stopping.own_request(FAILED, attempt.grace_s))
        return due

    def _step(self, attempt: Attempt, now: float) -> float:
        for service in self._services:
            if service.state == RESTARTING and now >= service.due:
                self._restart(attempt, service)
            elif service.state in (STARTING, READY):
                self._look(attempt, service, now)
        return min(service.due for service in self._services)

    def _look(self, attempt: Attempt, service: Service, now: float) -> None:
        found = service.look(now)
        if found == "not_ready" and not attempt.mains:
            self._fail(attempt, service.failure(attempt, "not_ready"))
        elif found in ("not_ready", "unhealthy"):
            _note(attempt, "service_unhealthy", service, {"said": service.said()})
        elif found:
            _note(attempt, f"service_{found}", service, {})

    def _restart(self, attempt: Attempt, service: Service) -> None:
        try:
            failure = service.launch(attempt)
        except OSError:
            service.put_off(1.0)  # a full disk: nothing runs that cannot be recorded
            return
        if failure is not None:
            self._fail(attempt, {**service.failure(attempt, ""), **failure})

    def ended(self, attempt: Attempt, info: os.waitid_result) -> None:
        """A child that is about to be reaped while the attempt goes on; it may be a service."""
        service = self.note(info)
        if service is None:
            return
        told: dict[str, Any] = {"pid": info.si_pid, "code": service.code, "signal": service.signal}
        if attempt.stop is None and service.may_restart:
            told["restart_in_s"] = service.restart_later(info)
        _note(attempt, "service_exit", service, told)
        if attempt.stop is not None or service.state == RESTARTING:
            return
        if service.code != 0 or not attempt.mains:
            code = "restarts_used_up" if service.restarts else "exited"
            self._fail(attempt, service.failure(attempt, code))

    def note(self, info: os.waitid_result) -> Service | None:
        """Remember how it ended, if the child is a service."""
        for service in self._services:
            if service.pid == info.si_pid:
                service.exited(info)
                return service
        return None

    def pids(self) -> frozenset[int]:
        return frozenset(service.pid for service in self._services if service.pid)

    def told(self) -> list[dict[str, Any]]:
        """For the receipt."""
        return [service.told() for service in self._services]

    def bound_logs(self, attempt: Attempt) -> None:
        for service in self._services:
            log_bound.bound_named(attempt, service.log)

    def close(self) -> None:
        for service in self._services:
            service.stop_looking()

    def _fail(self, attempt: Attempt, failure: Failure) -> None:
        """The first one counts; on record in case nobody is left to tell it in the end."""
        if self.failure is None:
            self.failure = failure
            with contextlib.suppress(OSError):
                attempt.journal.append(FAILED, failure)


def _note(attempt: Attempt, kind: str, service: Service, fields: dict[str, Any]) -> None:
    told = {"name": service.name, **fields}
    with contextlib.suppress(OSError):
        attempt.journal.append(kind, told)
    attempt.host.news.send(kind, attempt.attempt_id, restarts=service.restarts, **told)
