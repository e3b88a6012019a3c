"""Who has a device file open, and who a process is, read from /proc."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
_UVM = "/dev/nvidia-uvm"


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
    """Processes that can hold memory of GPU `minor`: they have it and the memory driver open.
    Tools that only watch the GPU do not open the memory driver. Other people's processes show
    their files to root only."""
    device = f"/dev/nvidia{minor}"
    found = []
    for pid in _pids(proc):
        files = _open_files(proc / str(pid) / "fd")
        if device in files and _UVM in files:
            found.append(pid)
    return found


def _pids(proc: Path) -> Iterator[int]:
    own = os.getpid()
    for entry in os.scandir(proc):
        if entry.name.isdigit() and int(entry.name) != own:
            yield int(entry.name)


def _open_files(folder: Path) -> set[str]:
    files = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    files.add(os.readlink(entry.path))
                except OSError:
                    continue
    except OSError:
        return set()
    return files
