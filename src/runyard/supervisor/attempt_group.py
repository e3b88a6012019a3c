"""The control group of one attempt: kills all of it, limits it, counts what the kernel did.

An extra on top of direct children and ECHILD; whatever fails here, the attempt goes on without it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

from runyard.supervisor import process_table

# What a group can be there for. On cgroup v2 all of them are one directory.
UNIFIED, FREEZER, MEMORY, PIDS = "unified", "freezer", "memory", "pids"

_MEMBERS = "cgroup.procs"
_FREEZE_PATIENCE_S = 0.1
_REMOVE_PATIENCE_S = 1.0


class Group:
    """`paths` names the directory for each role, in the order in which they are joined."""

    __slots__ = ("paths",)

    def __init__(self, paths: dict[str, str]) -> None:
        self.paths = paths

    @property
    def directories(self) -> list[str]:
        return list(dict.fromkeys(self.paths.values()))

    def make(self) -> bool:
        """All of its directories, or none."""
        made: list[str] = []
        try:
            for directory in self.directories:
                os.mkdir(directory)
                made.append(directory)
        except OSError:
            for directory in made:
                os.rmdir(directory)
            return False
        return True

    def has_in_memory(self, pid: int) -> bool:
        """Whether the memory of a process is counted here; True for one that just ended."""
        if MEMORY not in self.paths:
            return False
        memberships = (process_table.read(f"/proc/{pid}/cgroup") or b"").splitlines()
        return not memberships or any(
            (b":memory:" in line or line.startswith(b"0::")) and self._name in line
            for line in memberships
        )

    # limits

    def limit_memory(self, megabytes: int) -> bool:
        """No more than this, swap included; on v2 all of the job dies together at the limit."""
        path, limit = self.paths.get(MEMORY), str(megabytes << 20)
        if path is None:
            return False
        if self._is_unified(path):
            _write(f"{path}/memory.swap.max", "0")
            _write(f"{path}/memory.oom.group", "1")
            return _write(f"{path}/memory.max", limit)
        done = _write(f"{path}/memory.limit_in_bytes", limit)
        _write(f"{path}/memory.memsw.limit_in_bytes", limit)  # absent without swap accounting
        return done

    def limit_processes(self, count: int) -> bool:
        path = self.paths.get(PIDS)
        return path is not None and _write(f"{path}/pids.max", str(count))

    # counters, to be read before it is removed

    def oom_kills(self) -> int:
        """Processes of it that the kernel killed because memory ran out, here or on the host."""
        path = self.paths.get(MEMORY)
        if path is None:
            return 0
        name = "memory.events" if self._is_unified(path) else "memory.oom_control"
        return _counter(f"{path}/{name}", b"oom_kill")

    def memory_peak_mb(self) -> int | None:
        path = self.paths.get(MEMORY)
        if path is None:
            return None
        name = "memory.peak" if self._is_unified(path) else "memory.max_usage_in_bytes"
        value = process_table.read(f"{path}/{name}")
        return int(value) >> 20 if value is not None else None

    def forks_refused(self) -> int:
        path = self.paths.get(PIDS)
        return 0 if path is None else _counter(f"{path}/pids.events", b"max")

    # ending it

    def stop_forks(self) -> None:
        self.limit_processes(0)

    def kill(self) -> None:
        """SIGKILL to every member. What was frozen is thawed: SIGKILL waits for that on v1."""
        self.stop_forks()
        if UNIFIED in self.paths:
            _write(f"{self.paths[UNIFIED]}/cgroup.kill", "1")
        elif FREEZER in self.paths:
            self._kill_frozen()
        else:
            self._kill_members()

    def thaw(self) -> None:
        """Whoever froze it may have died before the thaw."""
        if FREEZER in self.paths:
            for directory in _with_subgroups(self.paths[FREEZER]):
                _write(f"{directory}/freezer.state", "THAWED")

    def freeze(self) -> bool:
        """True once nothing in it can run, fork or end."""
        path = f"{self.paths[FREEZER]}/freezer.state"
        deadline = time.monotonic() + _FREEZE_PATIENCE_S
        while _write(path, "FROZEN"):
            if (process_table.read(path) or b"").strip() == b"FROZEN":
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)
        return False

    def populated(self) -> bool:
        """Whether anything lives in it; on v2 that is a counter of the kernel, not a list."""
        if UNIFIED in self.paths:
            return _counter(f"{self.paths[UNIFIED]}/cgroup.events", b"populated") > 0
        return bool(self.members())

    def members(self) -> list[int]:
        return [
            int(pid)
            for directory in self.directories[:1]
            for group in _with_subgroups(directory)
            for pid in (process_table.read(f"{group}/{_MEMBERS}") or b"").split()
        ]

    def remove(self, patience_s: float = _REMOVE_PATIENCE_S) -> bool:
        """Its directories and what the job made below them; True once none is left."""
        deadline = time.monotonic() + patience_s
        while [directory for directory in self.directories if not _removed(directory)]:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)
        return True

    def _kill_frozen(self) -> None:
        self.thaw()
        self.freeze()
        try:
            self._kill_members()
        finally:
            self.thaw()

    def _kill_members(self) -> None:
        for pid in self.members():
            _kill_member(pid, self._name)

    @property
    def _name(self) -> bytes:
        return os.path.basename(self.directories[0]).encode()

    def _is_unified(self, path: str) -> bool:
        return path == self.paths.get(UNIFIED)


def new(places: dict[str, str]) -> Group:
    """Not made yet. Its name is random: no other group, earlier or later, has it."""
    name = f"runyard-{os.urandom(8).hex()}"
    return Group({role: f"{place}/{name}" for role, place in places.items()})


def join(directories: tuple[str, ...]) -> None:
    """Called by the child itself. After a quiet time it takes the kernel some ten milliseconds."""
    for directory in directories:
        _write(f"{directory}/{_MEMBERS}", "0")


def _kill_member(pid: int, group: bytes) -> None:
    """Hold it, see that it still is a member, then kill exactly that process."""
    try:
        pidfd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return
    try:
        if group in (process_table.read(f"/proc/{pid}/cgroup") or b""):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(pidfd)


def _with_subgroups(directory: str) -> Iterator[str]:
    """It and what the job made below it, the lowest last."""
    yield directory
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            if entry.is_dir(follow_symlinks=False):
                yield from _with_subgroups(entry.path)


def _removed(directory: str) -> bool:
    """Try to remove a group with what is below it; True once it is gone."""
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError:
        below = list(_with_subgroups(directory))[1:]
        for subgroup in reversed(below):
            with contextlib.suppress(OSError):
                os.rmdir(subgroup)
        return False
    return True


def _counter(path: str, name: bytes) -> int:
    for line in (process_table.read(path) or b"").splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name:
            return int(words[1])
    return 0


def _write(path: str, value: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, value.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
