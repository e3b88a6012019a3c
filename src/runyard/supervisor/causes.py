"""Why the main process ended, as far as the kernel and our own records tell; first match wins."""

from __future__ import annotations

import signal
from typing import Any

_CRASHES = frozenset((signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE))
_KILLS = {signal.SIGKILL: "KILL", signal.SIGTERM: "TERM"}


def of_main(main: dict[str, Any], oom_kills: int) -> str:
    """`main` is its end as recorded; no stop was under way."""
    number = main.get("signal")
    if oom_kills and number == signal.SIGKILL:
        return "oom"
    if oom_kills and main.get("code") != 0:
        return "oom_child"
    if main.get("killed_externally"):
        return "killed_externally"
    if number in _CRASHES:
        return "crashed"
    return "exited"


def killed_externally(status: dict[str, Any], sent: list[dict[str, Any]]) -> bool:
    """A KILL or TERM that nobody here had sent by then."""
    name = _KILLS.get(status["signal"])
    return name is not None and not any(signalled["signal"] == name for signalled in sent)
