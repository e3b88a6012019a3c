"""Runs one command for a client and ends its whole tree with that client:
`python -I -S guard.py CLIENT_PID GRACE_S COMMAND...`

The client holds the other end of stdin. When it closes, when the client is gone or on SIGTERM,
everything the command started is ended; SIGUSR1 or a second SIGTERM ends the grace. The exit code
is the command's, 128 + N when signal N ended it.
"""

import os
import sys

if "runyard" not in sys.modules:
    # Only this folder is importable: no site-packages, and nothing else of the package.
    package = type(sys)("runyard")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["runyard"] = package

import contextlib
import select
import signal
import time
from types import FrameType
from typing import NoReturn

from runyard.supervisor import kernel, process_table

CANNOT_EXECUTE = 127
LEFTOVER_GRACE_S = 2.0
_FORCED = 2  # so many signals end the grace
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Guard:
    def __init__(self, client_pid: int, grace_s: float) -> None:
        self._grace_s = grace_s
        self._asked = 0  # how often a signal told us to end
        self._client_gone = False
        self._main = 0  # 0 once it is reaped: from then on its number may be another's
        self._code = 0
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*_ENDING, signal.SIGCHLD):
            signal.signal(number, self._heard)
        self._poll = select.poll()
        for descriptor in (0, self._woken, *_watched(client_pid)):
            self._poll.register(descriptor, select.POLLIN)
        # After the look at it: a client that died before this line is not our parent any more.
        self._client_gone = os.getppid() != client_pid

    def run(self, argv: list[str]) -> int:
        if self._client_gone:
            return CANNOT_EXECUTE
        self._main = _started(argv)
        while self._main and not self._told_to_end():
            self._listen(None)
            self._reap()
        self._end_tree(self._grace_s if self._main else LEFTOVER_GRACE_S)
        return self._code

    def _told_to_end(self) -> bool:
        return self._client_gone or self._asked > 0

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGUSR1:  # two SIGTERM sent at once may arrive as one
            self._asked += _FORCED
        elif number != signal.SIGCHLD:
            self._asked += 1

    def _listen(self, seconds: float | None) -> None:
        """Until something happens: a child ends, a signal comes, the client goes away."""
        for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000):
            if descriptor == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
            elif descriptor != 0 or not os.read(0, 4096):
                self._client_gone = True
                self._poll.unregister(descriptor)

    def _reap(self) -> bool:
        """True when no child is left, which the kernel says with ECHILD."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._main:
                    code = os.waitstatus_to_exitcode(ended[1])
                    self._code = code if code >= 0 else 128 - code
                    self._main = 0
        except ChildProcessError:
            return True
        return False

    def _end_tree(self, grace_s: float) -> None:
        """Orphans come up to us, so the tree is gone when no direct child is left."""
        deadline = time.monotonic() + grace_s
        told: set[int] = set()
        pause_s = 0.001
        while not self._reap():
            if time.monotonic() >= deadline or self._asked >= _FORCED:
                self._kill_all()
            else:
                self._tell_to_end(told)
            self._listen(pause_s)
            pause_s = min(pause_s * 2, 0.05)

    def _tell_to_end(self, told: set[int]) -> None:
        for pid in process_table.own_children():
            if pid in told:
                continue
            told.add(pid)
            for number in (signal.SIGTERM, signal.SIGCONT):
                with contextlib.suppress(OSError):
                    if pid == self._main:  # its group is its own: it began a session
                        os.killpg(pid, number)
                    else:
                        os.kill(pid, number)

    def _kill_all(self) -> None:
        """Only direct children: nobody else can reap them, so their numbers are their own."""
        for pid in process_table.own_children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _watched(client_pid: int) -> list[int]:
    """A descriptor that becomes readable when the client is gone. The end of stdin alone tells
    too little: a process that the client forked may hold the other end."""
    try:
        return [os.pidfd_open(client_pid)]
    except (AttributeError, OSError):
        return []


def _started(argv: list[str]) -> int:
    guard = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _become(argv, guard)
        finally:
            os._exit(CANNOT_EXECUTE)
    return pid


def _become(argv: list[str], guard: int) -> NoReturn:
    signal.set_wakeup_fd(-1)
    for number in (*_ENDING, signal.SIGCHLD, *_IGNORED_BY_PYTHON):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(CANNOT_EXECUTE)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(CANNOT_EXECUTE)


def main(arguments: list[str]) -> int:
    client_pid, grace_s, *argv = arguments
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    kernel.name_process("runyard-guard")
    kernel.become_subreaper()
    return Guard(int(client_pid), float(grace_s)).run(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
