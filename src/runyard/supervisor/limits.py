"""What an attempt may use: set before the job runs, watched where the kernel cannot enforce it.

RLIMIT_AS is never set: a CUDA context alone reserves more address space than most limits.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from runyard.supervisor import attempt_group, process_table, stopping

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt
    from runyard.supervisor.attempt_group import Group

_RESIDENT = (b"RssAnon:", b"RssShmem:")
_PROPORTIONAL = (b"Pss_Anon:", b"Pss_Shmem:")


class Limits:
    """The limits of one attempt, and which of them hold."""

    __slots__ = ("_memory_by_kernel", "_spec", "used_mb")

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._memory_by_kernel = False
        self.used_mb: int | None = None  # what was seen when the soft limit was reached

    @property
    def memory_mb(self) -> int | None:
        return self._spec.get("memory_limit_mb")

    def impose(self, attempt: Attempt) -> Group | None:
        """Before anything of it runs: make its group, if it wants one and there can be one. The
        record comes first, so that no group is ever left that no record names."""
        if not self._spec.get("cgroup"):
            return None
        places = attempt.host.group_places()
        group = attempt_group.new(places)
        record = {**attempt.host.job_identity, "paths": group.paths}
        try:
            if not places or not attempt.journal.append("cgroup", record) or not group.make():
                return None
        except OSError:
            return None  # a full disk: it cannot be recorded, so there is none
        if self.memory_mb:
            self._memory_by_kernel = group.limit_memory(self.memory_mb)
        if self._spec.get("pids_limit"):
            group.limit_processes(self._spec["pids_limit"])
        return group

    def check(self, attempt: Attempt) -> None:
        """The job runs: whether the kernel really holds its memory limit."""
        if self._memory_by_kernel and attempt.group is not None:
            self._memory_by_kernel = all(map(attempt.group.has_in_memory, attempt.mains))

    def watch(self, attempt: Attempt) -> None:
        """At each heartbeat: where no group holds the limit, end the attempt that is above it."""
        limit = self.memory_mb
        if not limit or self._memory_by_kernel or not self._spec.get("memory_soft"):
            return
        if attempt.stop is not None or not attempt.mains:
            return
        used = memory_used_mb(process_table.descendants(os.getpid()), limit)
        if used > limit:
            self.used_mb = used
            attempt.begin_stop(stopping.own_request("memory", attempt.grace_s))

    def of_end(self, group: Group | None, cause: str) -> dict[str, Any]:
        """What the end record says about limits."""
        found = {} if group is None else _counted(group)
        if cause in ("oom", "oom_child", "oom_soft") and self.memory_mb:
            found["limit_mb"] = self.memory_mb
        if cause == "oom_soft":
            found["used_mb"] = self.used_mb
        return found


def _counted(group: Group) -> dict[str, Any]:
    """The kernel's counters of a group that is still there."""
    found: dict[str, Any] = {
        "memory_peak_mb": group.memory_peak_mb(),
        "oom_kills": group.oom_kills(),
        "forks_refused": group.forks_refused(),
    }
    return {name: value for name, value in found.items() if value}


def memory_used_mb(pids: list[int], limit_mb: int) -> int:
    """What the processes hold together that only ending them gives back: no file pages. The cheap
    sum counts shared pages once for each process; only where that is too much are they divided."""
    resident = sum(_kilobytes(f"/proc/{pid}/status", _RESIDENT) or 0 for pid in pids)
    if resident >> 10 <= limit_mb:
        return resident >> 10
    proportional = 0
    for pid in pids:
        divided = _kilobytes(f"/proc/{pid}/smaps_rollup", _PROPORTIONAL)
        if divided is None:  # an older kernel, or not ours to read: only what it has for itself
            divided = _kilobytes(f"/proc/{pid}/status", (b"RssAnon:",)) or 0
        proportional += divided
    return proportional >> 10


def _kilobytes(path: str, names: tuple[bytes, ...]) -> int | None:
    """The sum of some lines of a file of /proc; None where none of them is there."""
    found = [
        int(words[1])
        for line in (process_table.read(path) or b"").splitlines()
        if (words := line.split()) and words[0] in names
    ]
    return sum(found) if found else None
