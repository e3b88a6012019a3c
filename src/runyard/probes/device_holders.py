"""Who has a device file open, and who a process is, read from /proc."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
WATCHING_HANDLES = 3  # what NVML alone opens per device (driver 580); CUDA opens far more


def is_alive(pid: int, proc: Path = PROC) -> bool:
    """Whether it still runs; one that is dead but not yet collected does not."""
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b") ")[2][:1] not in (b"Z", b"X")


def user_of(pid: int, proc: Path = PROC) -> str:
    try:
        uid = (proc / str(pid)).stat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # a container's user need not have a name
        return str(uid)


def name_of(pid: int, proc: Path = PROC) -> str:
    try:
        return (proc / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def cuda_holders(minor: int, proc: Path = PROC) -> list[int]:
    """Processes that can hold memory of GPU `minor`. One that uses CUDA has the device open many
    times, also in workers it forked; one that only watches (nvidia-smi, another server, ourselves)
    a few times. Other people's processes show their files to root only."""
    device = f"/dev/nvidia{minor}"
    own = os.getpid()
    watching = max(WATCHING_HANDLES, _times_open(proc / str(own) / "fd", device))
    return [
        pid
        for pid in _pids(proc)
        if pid != own and _times_open(proc / str(pid) / "fd", device) > watching
    ]


def _pids(proc: Path) -> Iterator[int]:
    for entry in os.scandir(proc):
        if entry.name.isdigit():
            yield int(entry.name)


def _times_open(folder: Path, device: str) -> int:
    count = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    count += os.readlink(entry.path) == device
                except OSError:
                    continue
    except OSError:
        return 0
    return count
