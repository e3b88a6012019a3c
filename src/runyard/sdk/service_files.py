"""What a local service is started with: its command's words, its log file."""

from __future__ import annotations

import contextlib
import os
import random
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_KEPT_S = 30 * 86400.0
_FIRST_PORT = 20_000
_PORT_TRIES = 100


def argv(command: str | Sequence[str], port: int) -> list[str]:
    """A string runs by /bin/sh -c, a list as it is; `{port}` is replaced, other braces stay."""
    if isinstance(command, str):
        return ["/bin/sh", "-c", command.replace("{port}", str(port))]
    return [word.replace("{port}", str(port)) for word in command]


def variable(name: str) -> str:
    """A service's name as it appears inside a variable's name."""
    return re.sub("[^A-Z0-9]+", "_", name.upper()).strip("_")


def quiet_ports() -> list[int]:
    """Some ports to try, best first: such as no outgoing connection is ever given."""
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return [0]
    quiet = range(_FIRST_PORT, lowest)
    return [*random.sample(quiet, min(_PORT_TRIES, len(quiet))), 0]


def new_log(name: str) -> str:
    """The path of a log nobody writes to yet; those of a month ago are removed."""
    folder = _log_folder()
    _forget_old(folder)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return str(folder / f"{name}-{stamp}-{os.getpid()}.log")


def private(path: str, flags: int) -> int:
    """For `open`: readable by this user only."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _log_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = Path(state) / "runyard" / "services"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:  # no home, or one that cannot be written
        return Path(tempfile.mkdtemp(prefix="runyard-services-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="runyard-"))


def _forget_old(folder: Path) -> None:
    oldest = time.time() - _KEPT_S
    for path in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
