"""Process 1 of a container: reaps orphans, keeps a server running as its child, ends with it.

The server must not be process 1 itself: then killing it would end the container and every job.
The keeper comes up to this process like any orphan, and stays a process of its own, so that it too
can be killed or replaced by a newer one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from runyard.supervisor import process_table

_PASSED_ON = frozenset((signal.SIGTERM, signal.SIGINT))
_HEARD = _PASSED_ON | {signal.SIGCHLD}
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0  # a server that lived this long starts with a short pause again
_LOOK_S = 0.05
_PATIENCE_S = 600.0  # more than any engine waits before it kills
_OURS = (b"runyard-keeper", b"runyard-superv")


def is_needed() -> bool:
    return os.getpid() == 1


def run(command: Sequence[str]) -> int:
    """Keep `command` running; the exit code of the whole."""
    return _Init(command).run()


class _Init:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._server = 0
        self._started = 0.0
        self._pause = _FIRST_PAUSE_S
        self._asked = False

    def run(self) -> int:
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        while True:
            self._start()
            code = self._serve()
            if code is None and not self._rest():
                code = 0
            if code is not None:
                self._end_rest()
                return code

    def _start(self) -> None:
        self._started = time.monotonic()
        self._server = os.fork()
        if self._server == 0:
            _become(self._command)

    def _serve(self) -> int | None:
        """The exit code to leave with; None if somebody killed the server."""
        while True:
            number = signal.sigwaitinfo(_HEARD).si_signo
            if number in _PASSED_ON:
                self._asked = True
                os.kill(self._server, number)
                continue
            status = self._reap()
            if status is None:
                continue
            code = os.waitstatus_to_exitcode(status)
            if code >= 0:
                return code
            if self._asked:
                return 128 - code
            _say(f"the server was ended by signal {-code}")
            return None

    def _reap(self) -> int | None:
        """Everything that has ended; the status of the server if it is among that."""
        status = None
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._server:
                    self._server, status = 0, found[1]
        except ChildProcessError:
            pass
        return status

    def _rest(self) -> bool:
        """A pause before the next start, longer each time; False if we were asked to end."""
        if time.monotonic() - self._started >= _STEADY_S:
            self._pause = _FIRST_PAUSE_S
        _say(f"the server is started again in {self._pause:g} s; jobs run on meanwhile")
        until = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_S)
        while (left := until - time.monotonic()) > 0:
            info = signal.sigtimedwait(_HEARD, left)
            if info is not None and info.si_signo in _PASSED_ON:
                return False
            self._reap()
        return True

    def _end_rest(self) -> None:
        """With this process all others die. Jobs that the server has left running are told before,
        and have their grace; another signal cuts it short."""
        living = _supervisors_and_keepers()
        if living:
            _say("the container ends: what still runs is told to end")
        for pid in living:
            # Whoever else has the number by now ends with the container too.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + _PATIENCE_S
        while _supervisors_and_keepers() and time.monotonic() < until:
            info = signal.sigtimedwait(_HEARD, _LOOK_S)
            if info is not None and info.si_signo in _PASSED_ON:
                return
            self._reap()


def _supervisors_and_keepers() -> list[int]:
    """Living ones: children of this process, and supervisors below a keeper."""
    found = []
    for pid in process_table.own_children():
        for candidate in (pid, *process_table.children(pid)):
            name = process_table.read(f"/proc/{candidate}/comm", 64) or b""
            if name.strip() in _OURS and process_table.alive(candidate):
                found.append(candidate)
    return found


def _become(command: list[str]) -> NoReturn:
    try:
        # A session of its own: Ctrl-C in the container's terminal then reaches it once, from us.
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execv(command[0], command)
    except BaseException as error:
        _say(f"the server cannot be started: {error}")
    os._exit(127)


def _say(words: str) -> None:
    print(f"runyard: {words}", file=sys.stderr, flush=True)
