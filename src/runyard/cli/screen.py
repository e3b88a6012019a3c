"""A terminal used as a whole: another page, single keys, and everything put back at the end."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[?25h\x1b[?1049l"


class Screen:
    """For `with`. Keys are read only where stdin is a terminal."""

    def __init__(self) -> None:
        self._saved: list[object] | None = None
        self._keys = sys.stdin.fileno() if _is_terminal(sys.stdin) else -1

    def __enter__(self) -> Screen:
        if self._keys >= 0:
            import termios
            import tty

            self._saved = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
        _write(_ENTER)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            _write(_LEAVE)
        if self._saved is not None:
            import termios

            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]

    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        found = shutil.get_terminal_size()
        return found.columns, found.lines

    def show(self, lines: Sequence[str]) -> None:
        """Overwrites in place, which does not flicker."""
        _, rows = self.size()
        shown = list(lines[: max(1, rows - 1)])
        _write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in shown) + "\x1b[J")

    def key(self, seconds: float) -> str:
        """The next key within so many seconds, "" if there was none."""
        if self._keys < 0:
            select.select([], [], [], seconds)
            return ""
        ready, _, _ = select.select([self._keys], [], [], seconds)
        return os.read(self._keys, 64).decode("utf-8", "replace") if ready else ""


def draws_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def is_terminal() -> bool:
    return _is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"


def _is_terminal(stream: object) -> bool:
    with contextlib.suppress(AttributeError, ValueError):
        return bool(stream.isatty())  # type: ignore[attr-defined]
    return False


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextlib.contextmanager
def opened() -> Iterator[Screen]:
    with Screen() as screen:
        yield screen
