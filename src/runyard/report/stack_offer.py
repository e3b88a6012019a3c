"""An offer to the server: a signal at which this process writes where each of its threads is.

Made at the first report. The signal is one that programs do not use, and only if it is free; the
file in the run directory says that the process may be sent it.
"""

from __future__ import annotations

import os

# SIGUSR1 and SIGUSR2 belong to the program: Slurm habits, launchers and debuggers use them.
SIGNAL = 43  # SIGRTMIN + 9 with glibc
FOLDER_VARIABLE = "RUNYARD_RUN_DIR"


class _State:
    pid = 0  # of the process that has made its offer; a fork makes its own


def file_name(pid: int) -> str:
    return f"stacks-{pid}.txt"


def make() -> None:
    """Once for each process; never raises."""
    if os.getpid() == _State.pid:
        return
    _State.pid = os.getpid()
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    try:
        _register(f"{folder}/{file_name(_State.pid)}")
    except Exception:  # no such folder, no such signal here: the server does without
        return


def _register(path: str) -> None:
    import faulthandler
    import signal

    faulthandler.unregister(SIGNAL)  # a parent's, which writes to the parent's file
    if signal.getsignal(SIGNAL) is not signal.SIG_DFL or _is_caught():
        return  # the program uses it
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    faulthandler.register(SIGNAL, file=fd, all_threads=True, chain=False)


def _is_caught() -> bool:
    """Also by a library that did not ask Python."""
    with open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"SigCgt:"):
                return bool(int(line.split()[1], 16) >> (SIGNAL - 1) & 1)
    return True
