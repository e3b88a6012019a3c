"""A stop under way: what was asked, what was signalled, when patience ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from runyard.supervisor import process_table, protocol, shared_memory
from runyard.supervisor.stop_request import Request

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt

_EXIT_CAUSES = {
    "timeout": "timeout",
    "memory": "oom_soft",
    "service_failed": "service_failed",
    "rank_lagged": "rank_lagged",
    "lifeline": "supervisor_lost",  # what watched over it on its node is gone
}
OWN_SEQ = 0  # below that of every request from outside
_OVERRIDING = ("user", "shutdown")  # a person's word replaces the cause of an earlier stop


class Stopping:
    """`main_margin_s` of a spec is for a main process that ends by itself what it stands for (a
    container): it is told of every stop, and has so long after the grace."""

    __slots__ = ("_margin_s", "deadline", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._margin_s = 0.0
        self.deadline: float = time.monotonic() + request["grace_s"]

    @property
    def cause(self) -> str:
        return str(self.request["cause"])

    @property
    def exit_cause(self) -> str:
        return exit_cause(self.request)

    @property
    def forced(self) -> bool:
        return time.monotonic() >= self.deadline

    def begin(self, attempt: Attempt) -> None:
        """Tell the job to end itself; with no grace there is nothing to tell."""
        attempt.end.shared_memory = shared_memory.mapped_by(_tree())
        self._margin_s = float(attempt.spec.get("main_margin_s", 0.0))
        self.deadline += self._margin_s
        if (self.request["grace_s"] <= 0 and not self._margin_s) or not attempt.mains:
            return
        _write_stop_file(attempt, self.request)
        mode = attempt.spec.get("term_mode", "group")
        for number in (signal.SIGTERM, signal.SIGCONT):
            _signal(attempt, mode, number)
        attempt.end.signalled("TERM", mode)

    def shorten(self, attempt: Attempt, request: Request) -> None:
        """A later request can only shorten the grace."""
        if request["cause"] in _OVERRIDING or self.request["cause"] == request["cause"]:
            self.request = request
        deadline = time.monotonic() + request["grace_s"] + self._margin_s
        self.deadline = min(self.deadline, deadline)
        if self._margin_s:
            _signal(attempt, "main", signal.SIGTERM)


def exit_cause(request: Request) -> str:
    """What the end record calls it."""
    return _EXIT_CAUSES.get(request["cause"], "cancelled")


def own_request(cause: str, grace_s: float) -> Request:
    """A stop that the supervisor decides by itself."""
    return {
        "seq": OWN_SEQ,
        "cause": cause,
        "grace_s": grace_s,
        "requested_by": "supervisor",
        "requested_at": time.time(),
    }


def _signal(attempt: Attempt, mode: str, number: int) -> None:
    """Mains are not reaped yet, so their numbers and those of their groups are still their own."""
    if mode == "all":
        for pid in _tree():
            _signal_tagged(pid, attempt.spec["tag"], number)
        return
    for pid in attempt.mains:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if mode == "main":
                os.kill(pid, number)
            else:
                os.killpg(pid, number)


def _signal_tagged(pid: int, tag: int, number: int) -> None:
    """A descendant may be reaped by its parent at any time: hold it, prove it, signal it."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if process_table.tag(pid) == tag:
            signal.pidfd_send_signal(pidfd, number)
    except OSError:
        pass
    finally:
        os.close(pidfd)


def _tree() -> list[int]:
    return process_table.descendants(os.getpid())


def _write_stop_file(attempt: Attempt, request: Request) -> None:
    """Training code polls for this file; it is there before the signal."""
    path = attempt.spec["env"].get(protocol.STOP_FILE)
    if not path:
        return
    note: dict[str, Any] = {name: request[name] for name in ("cause", "grace_s", "requested_at")}
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(fd, json.dumps(note).encode())
        os.close(fd)
    except OSError:
        pass  # the signal still tells
