"""Which process is meant: a pid alone is no proof, it can be used again."""

from __future__ import annotations

import os
import time
from typing import Any

Identity = dict[str, Any]


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return file.read().strip().decode()


def pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if it is gone."""
    stat = stat_fields(pid)
    return int(stat[19]) if stat is not None else None


def ticks_at(moment: float) -> int:
    """The clock ticks since boot at a moment of the wall clock; a second earlier, to be sure."""
    ago = time.time() - moment + 1.0
    seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - ago
    return max(0, int(seconds * os.sysconf("SC_CLK_TCK")))


def stat_fields(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the state (field 3) on; None if the process is gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    return data[data.rindex(b")") + 2 :].split()


def of_process(pid: int) -> Identity:
    """The identity of a living process of ours."""
    return {
        "pid": pid,
        "start_ticks": start_ticks(pid),
        **machine_life(),
        "pidfd_ino": pidfd_inode(pid),
    }


def pidfd_inode(pid: int) -> int | None:
    """Unique per process for the whole uptime since Linux 6.9; before, all pidfds share one."""
    try:
        mine = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
    try:
        other = os.pidfd_open(os.getppid() if pid == os.getpid() else os.getpid())
    except OSError:
        os.close(mine)
        return None
    try:
        inode = os.fstat(mine).st_ino
        return inode if inode != os.fstat(other).st_ino else None
    finally:
        os.close(mine)
        os.close(other)


def machine_life() -> Identity:
    """Where and how long numbers of processes mean anything: boot and pid namespace. The number
    of a namespace is used again after its end, so the start of its first process belongs to it."""
    return {"boot_id": boot_id(), "pidns": pid_namespace(), "init_ticks": start_ticks(1)}


def same_machine_life(recorded: Identity) -> bool:
    """Whether pids recorded there mean anything here. Old records do not tell of process 1."""
    now = machine_life()
    return all(
        recorded.get(name, value if name == "init_ticks" else None) == value
        for name, value in now.items()
    )


def open_verified(recorded: Identity) -> int | None:
    """A pidfd of exactly the recorded process, or None. Opened first and verified after: then the
    number cannot be handed to another process in between."""
    if not same_machine_life(recorded):
        return None
    try:
        pidfd = os.pidfd_open(recorded["pid"])
    except (OSError, AttributeError):
        return None
    inode = recorded.get("pidfd_ino")
    if start_ticks(recorded["pid"]) == recorded["start_ticks"] and (
        inode is None or os.fstat(pidfd).st_ino == inode
    ):
        return pidfd
    os.close(pidfd)
    return None
