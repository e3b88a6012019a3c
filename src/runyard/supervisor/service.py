"""One service of an attempt: its process, whether it answers, and what became of it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from runyard.supervisor import (
    end_record,
    health,
    identity,
    namespace,
    process_table,
    protocol,
)

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt

STARTING, READY, RESTARTING, ENDED = "starting", "ready", "restarting", "ended"
Failure = dict[str, Any]

_CHECK_S = 10.0
_CHECK_PATIENCE_S = 5.0
_UNHEALTHY_AFTER = 3  # checks in a row
_MOST_RESTARTS = 10  # in a row
_LONGEST_DELAY_S = 30.0
_LONG_RUN_S = 600.0  # after which restarts are counted anew
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.25
_LAST_LINE = 500


class Service:
    __slots__ = (
        "_check",
        "_failed_checks",
        "_in_a_row",
        "_namespace",
        "_pause_s",
        "_said",
        "_started_clock",
        "code",
        "due",
        "last_pid",
        "pid",
        "restarts",
        "signal",
        "spec",
        "state",
        "unhealthy",
        "was_ready",
    )

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.state = STARTING
        self.pid = 0  # 0 while no process of it is known to live
        self.last_pid: int | None = None
        self.restarts = 0
        self.code: int | None = None
        self.signal: int | None = None
        self.due = 0.0  # when there is something to do next
        self.unhealthy = False
        self.was_ready = False
        self._in_a_row = 0
        self._check: health.Check | None = None
        self._failed_checks = 0
        self._pause_s = _FIRST_PAUSE_S
        self._said = ""
        self._started_clock = 0.0
        self._namespace: list[tuple[int, int | None]] = []  # its init: pid, start

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def log(self) -> str:
        return protocol.service_log(self.name)

    def launch(self, attempt: Attempt) -> Failure | None:
        """Identity, then go; why it cannot run, if so. OSError if it cannot be recorded."""
        again = self.last_pid is not None
        if not again and not health.port_is_free(self.spec["port"]):
            return {"code": "port_in_use", "port": self.spec["port"]}
        child = attempt.host.take_child()
        attempt.reached("service_forked")
        record: dict[str, Any] = {
            "name": self.name,
            "pid": child.pid,
            "start_ticks": child.start_ticks,
            "pidfd_ino": child.pidfd_ino,
            "sid": child.pid,
            **attempt.host.job_identity,
            "started_at": time.time(),
            "port": self.spec["port"],
            "restarts": self.restarts + again,
        }
        try:
            attempt.journal.append("service", record)
        except OSError:
            child.discard()
            raise
        attempt.reached("service_record")
        child.release(self._plan(attempt))
        attempt.reached("service_go")
        failure = child.await_exec()
        if failure is not None:
            os.waitpid(child.pid, 0)
            return {"code": "exec_failed", **failure}
        self.pid = self.last_pid = child.pid
        if attempt.spec.get("isolation") == namespace.STRICT:
            inits = process_table.children(child.pid)
            self._namespace = [(pid, identity.start_ticks(pid)) for pid in inits]
        self.restarts += again
        self._begin(time.monotonic())
        return None

    def _plan(self, attempt: Attempt) -> dict[str, Any]:
        return {
            **attempt.plan(),
            "argv": self.spec["argv"],
            "env": {**attempt.spec["env"], **self.spec.get("env", {})},
            "log": f"{attempt.folder}/{self.log}",
            "terminal": "",
        }

    def _begin(self, now: float) -> None:
        self.state = STARTING
        self.code = self.signal = None
        self.due = now
        self._started_clock = now
        self._pause_s = _FIRST_PAUSE_S
        self._failed_checks = 0

    def exited(self, info: os.waitid_result) -> None:
        """Its process has ended and is not reaped yet."""
        status = end_record.status_of(info)
        self.code, self.signal = status["code"], status["signal"]
        self.pid = 0
        self.state = ENDED
        self.due = float("inf")
        self.stop_looking()

    def stop_looking(self) -> None:
        if self._check is not None:
            self._check.close()
            self._check = None

    @property
    def may_restart(self) -> bool:
        """After an exit: declared so, it once was ready, failed, and not too often in a row."""
        if time.monotonic() - self._started_clock >= _LONG_RUN_S:
            self._in_a_row = 0
        most = int(self.spec.get("most_restarts", _MOST_RESTARTS))
        wanted = self.restarts_on_failure and self.was_ready and self.code != 0
        return wanted and self._in_a_row < most

    @property
    def restarts_on_failure(self) -> bool:
        return bool(self.spec.get("restart") == "on-failure")

    def restart_later(self, info: os.waitid_result) -> float:
        """Seconds until it is started again. Its process is a zombie still, so the number of its
        group is its own: what else is in there, or in its namespace, must not keep the port."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(info.si_pid, signal.SIGKILL)
        self._end_namespace()
        first = float(self.spec.get("restart_delay_s", 1.0))
        delay = min(first * 2.0**self._in_a_row, _LONGEST_DELAY_S)
        self.put_off(delay)
        self._in_a_row += 1
        return delay

    def _end_namespace(self) -> None:
        """The init came up to us when its stand-in died, so nobody else can reap it."""
        children = process_table.own_children()
        for pid, ticks in self._namespace:
            if pid in children and identity.start_ticks(pid) == ticks:
                os.kill(pid, signal.SIGKILL)

    def put_off(self, delay_s: float) -> None:
        self.state = RESTARTING
        self.due = time.monotonic() + delay_s

    def look(self, now: float) -> str:
        """One step of checking; the news there is: "", ready, not_ready, unhealthy or healthy."""
        if self._check is None:
            if now < self.due:
                return ""
            try:
                until = now + _CHECK_PATIENCE_S
                self._check = health.Check(self.spec["port"], self.spec["health"], until)
            except OSError:
                self._pause(now)  # no descriptor to be had
                return ""
        healthy = self._check.poll(now)
        if healthy is None:
            self._pause(now)
            return self._late(now)
        self._said = self._check.said
        self._check = None
        return self._answered(now) if healthy else self._silent(now)

    def _answered(self, now: float) -> str:
        was_starting, was_unhealthy = self.state == STARTING, self.unhealthy
        self.state = READY
        self.was_ready = True
        self.unhealthy = False
        self._failed_checks = 0
        self._pause_s = _FIRST_PAUSE_S
        self.due = now + float(self.spec.get("check_s", _CHECK_S))
        return "ready" if was_starting else "healthy" if was_unhealthy else ""

    def _silent(self, now: float) -> str:
        if self.state == STARTING:
            self._pause(now)
            return self._late(now)
        self._failed_checks += 1
        self._pause_s = _FIRST_PAUSE_S
        self.due = now + float(self.spec.get("check_s", _CHECK_S))
        if self._failed_checks < _UNHEALTHY_AFTER or self.unhealthy:
            return ""
        self.unhealthy = True
        return "unhealthy"

    def _late(self, now: float) -> str:
        """Once it has used up the time it had to get ready."""
        limit = self._started_clock + float(self.spec["ready_timeout_s"])
        if self.state != STARTING or self.unhealthy:
            return ""
        if now < limit:
            self.due = min(self.due, limit)
            return ""
        self.unhealthy = True
        return "not_ready"

    def _pause(self, now: float) -> None:
        self.due = now + self._pause_s
        self._pause_s = min(self._pause_s * 1.5, _LONGEST_PAUSE_S)

    def failure(self, attempt: Attempt, code: str) -> Failure:
        """Why the job cannot go on."""
        found: Failure = {"code": code, "exit_code": self.code, "signal": self.signal}
        if code == "not_ready":
            found |= {"ready_timeout_s": self.spec["ready_timeout_s"], "said": self._said}
        return {"service": self.name, **found, "line": last_line(f"{attempt.folder}/{self.log}")}

    def told(self) -> dict[str, Any]:
        """For the receipt."""
        return {
            "name": self.name,
            "pid": self.last_pid,
            "port": self.spec["port"],
            "restarts": self.restarts,
            "exit_code": self.code,
            "signal": self.signal,
        }

    def said(self) -> str:
        """What the last failed check met."""
        return self._said


def last_line(path: str) -> str:
    """What a log says last, as far as one line can tell it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        size = os.fstat(fd).st_size
        data = os.pread(fd, 4096, max(0, size - 4096))
    finally:
        os.close(fd)
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip()[:_LAST_LINE] if lines else ""
