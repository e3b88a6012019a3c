"""A terminal for a job that insists on one (`tty: true`), copied to its log.

The supervisor holds the other side, so such a job does not outlive its supervisor.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Mapping

from runyard.supervisor import kernel

_COLUMNS, _LINES = 80, 24
_MOST = 65535
_CHUNK = 65536
_CHUNKS_A_TURN = 256  # then signals are looked at
_OUTPUT, _LOCAL = 1, 3  # places in the list of tcgetattr
TERM = "xterm-256color"


class Terminal:
    """SIGIO tells when there is something to copy."""

    __slots__ = ("_log", "_master", "_slave", "_unwritten", "path")

    def __init__(self, log: str, environment: Mapping[str, str]) -> None:
        self._master, self._slave = os.openpty()
        # Held open here too: then the end of data is told apart from the end of a writer.
        self.path = os.ttyname(self._slave)
        self._unwritten = b""
        self._log = -1
        try:
            _be_plain(self._slave)
            _set_size(self._slave, environment)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._log = os.open(log, flags, 0o600)
            kernel.signal_when_readable(self._master)
        except OSError:
            self.close()
            raise

    def copy(self) -> bool:
        """Write what came to the log; True if there may be more at once. On a full disk the job
        waits in its own write until there is room again: nothing is lost."""
        for _ in range(_CHUNKS_A_TURN):
            while self._unwritten:
                try:
                    written = os.write(self._log, self._unwritten)
                except OSError:
                    return False
                self._unwritten = self._unwritten[written:]
            try:
                self._unwritten = os.read(self._master, _CHUNK)
            except OSError:
                return False
        return True

    def finish(self) -> None:
        """All writers are dead: the rest of it."""
        while self.copy():
            pass

    def close(self) -> None:
        for fd in (self._log, self._master, self._slave):
            if fd >= 0:
                os.close(fd)


def _be_plain(fd: int) -> None:
    """Bytes arrive in the log as they were written, without carriage returns added."""
    modes = termios.tcgetattr(fd)
    modes[_OUTPUT] &= ~termios.OPOST
    modes[_LOCAL] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, modes)


def _set_size(fd: int, environment: Mapping[str, str]) -> None:
    lines = _number(environment.get("LINES"), _LINES)
    columns = _number(environment.get("COLUMNS"), _COLUMNS)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def _number(text: str | None, default: int) -> int:
    with contextlib.suppress(ValueError):
        if text and 0 < int(text) <= _MOST:
            return int(text)
    return default
