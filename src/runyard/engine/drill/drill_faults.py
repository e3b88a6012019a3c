"""The faults of a drill. Each holds a process by a pidfd, proves again that it belongs to the
attempt, and only then does something to exactly that process."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from runyard.supervisor import identity, journal, process_table

Belongs = Callable[[int], bool]

LABEL = "drill"  # of a clone: the fault that is done to it

_DATA = re.compile(r"^VmData:\s+(\d+) kB", re.MULTILINE)
_LOG_MAY_GROW = 1 << 20
_STANDARD_ERROR = 2
_HELD_BACK = 4 << 20  # what an allocator may still have in hand


def kill_main(folder: str) -> bool:
    """SIGKILL to the main process as it was recorded, as if the kernel had done it."""
    record = journal.read(folder).job
    pidfd = identity.open_verified(record) if record is not None else None
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def main_pid(folder: str) -> int | None:
    """Of the main process, if it lives."""
    record = journal.read(folder).job
    pidfd = identity.open_verified(record) if record is not None else None
    if record is None or pidfd is None:
        return None
    os.close(pidfd)
    return int(record["pid"])


def freeze(belongs: Belongs) -> int:
    """SIGSTOP to all of them: nothing moves any more, nothing ends."""
    return _each(belongs, lambda _pid, pidfd: signal.pidfd_send_signal(pidfd, signal.SIGSTOP))


def take_memory(belongs: Belongs) -> int:
    """From now on they get no more memory than they have: the next larger request fails."""

    def limit(pid: int, _pidfd: int) -> None:
        found = _DATA.search(Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
        if found:
            _set_soft(pid, resource.RLIMIT_DATA, int(found[1]) * 1024 + _HELD_BACK)

    return _each(belongs, limit)


def take_disk(belongs: Belongs, log: str) -> int:
    """From now on no file of theirs grows beyond the size of the log and a megabyte: a checkpoint
    cannot be written, what it prints still can."""
    try:
        size = os.stat(log).st_size
    except OSError:
        size = 0
    return _each(
        belongs, lambda pid, _: _set_soft(pid, resource.RLIMIT_FSIZE, size + _LOG_MAY_GROW)
    )


def truncate(path: str) -> str:
    """Cut the largest file of a checkpoint in half, as a crash while saving does."""
    files = [Path(path)]
    if os.path.isdir(path):
        files = [one for one in Path(path).rglob("*") if one.is_file() and not one.is_symlink()]
    largest = max(files, key=lambda one: one.stat().st_size)
    os.truncate(largest, largest.stat().st_size // 2)
    return str(largest)


def die_and_come_back(command: Sequence[str]) -> NoReturn:
    """This very process becomes a fresh start of itself: all its threads and all it has in memory
    end as with SIGKILL, nothing is closed or cleaned up by us. The number stays, so that whoever
    started the server keeps it."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > _STANDARD_ERROR:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execv(command[0], list(command))


def _each(belongs: Belongs, do: Callable[[int, int], None]) -> int:
    """How many it was done to."""
    done = 0
    for pid in process_table.pids():
        if not belongs(pid):
            continue
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
            try:
                # Held, it cannot become another's number between the proof and the deed.
                if belongs(pid) and process_table.alive(pid):
                    do(pid, pidfd)
                    done += 1
            finally:
                os.close(pidfd)
    return done


def _set_soft(pid: int, kind: int, amount: int) -> None:
    _, hard = resource.prlimit(pid, kind)
    if hard != resource.RLIM_INFINITY:
        amount = min(amount, hard)
    resource.prlimit(pid, kind, (amount, hard))
