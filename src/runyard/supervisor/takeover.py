"""What the keeper does when a supervisor dies: its tree is now the keeper's, and is ended.

A direct child of the keeper that is no known supervisor is such a leftover. ECHILD cannot tell
that none is left, because supervisors live: three clean passes and a sweep for the tag do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from runyard.supervisor import (
    attempt_group,
    belonging,
    end_record,
    identity,
    journal,
    process_table,
    protocol,
    shared_memory,
    stop_request,
)
from runyard.supervisor.keeper_pool import Pool
from runyard.supervisor.news import NewsSender

_PEEK = os.WEXITED | os.WNOWAIT | os.WNOHANG
_CLEAN_PASSES = 3
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
_STUCK_PAUSE_S = 1.0


class _Case:
    """One attempt whose supervisor died."""

    def __init__(self, attempt_id: str) -> None:
        self.attempt_id = attempt_id
        self.folder = f"{protocol.ATTEMPTS}/{attempt_id}"
        record = journal.read(self.folder)
        spec = record.spec or {}
        self.mains = [one for one in record.records if one["kind"] == "job"]
        self.group = attempt_group.Group(record.group["paths"]) if record.group else None
        self.tag: int | None = spec.get("tag")
        self.claims = belonging.Claims(
            {attempt_id: belonging.recorded(attempt_id, record)}
            if spec and record.first_process
            else {}
        )
        self.stuck_at = time.monotonic() + spec.get(
            "kill_timeout_s", protocol.DEFAULT_KILL_TIMEOUT_S
        )
        self.stuck = False
        self.clean = 0
        self.ended: set[int] = set()
        self.killed_at: float | None = None
        self.mapped: shared_memory.Mapped = {}
        self._looked_at: set[int] = set()
        self.kill_group()

    def kill_group(self) -> bool:
        """Kill what lives in its control group; True if there was any."""
        if self.group is None or not self.group.populated():
            return False
        self.mapped.update(shared_memory.mapped_by(self.group.members()))
        self.killed_at = self.killed_at or time.time()
        self.group.kill()
        return True

    def remember_shared_memory(self, pid: int) -> None:
        """Of a direct child and all below it; once for each, or a long chain of processes that
        come up one by one would be read again for every link."""
        if pid not in self._looked_at:
            tree = {pid, *process_table.descendants(pid)} - self._looked_at
            self._looked_at |= tree
            self.mapped.update(shared_memory.mapped_by(tree))

    def main(self, pid: int) -> journal.Record | None:
        """The record of the main process, or rank, that a child of ours is."""
        for job in self.mains:
            if job["pid"] == pid and job["start_ticks"] == identity.start_ticks(pid):
                return job
        return None


class Takeovers:
    def __init__(self, pool: Pool, sender: NewsSender) -> None:
        self._pool = pool
        self._news = sender
        self._passes = 0
        self._due = 0.0
        self.pending: list[_Case] = []

    def attempt_ids(self) -> list[str]:
        return [case.attempt_id for case in self.pending]

    def pause(self) -> float:
        """Seconds until the next pass is due."""
        return max(0.0, self._due - time.monotonic())

    def look(self) -> None:
        """A child of the keeper ended: find dead supervisors before anything is reaped."""
        for member in list(self._pool.by_pid.values()):
            if os.waitid(os.P_PID, member.pid, _PEEK) is None:
                continue
            self._pool.forget(member)
            os.waitpid(member.pid, 0)
            if member.attempt_id is not None:
                self._open(member.attempt_id)
        self._passes = 0
        self._due = 0.0
        self.step()

    def step(self) -> None:
        """One pass over the keeper's unknown children; the record for every case proven empty."""
        if self.pause() > 0:
            return
        busy = self._end_strangers()
        for case in list(self.pending):
            if case.tag in busy or None in busy or case.kill_group():
                case.clean = 0
                self._report_if_stuck(case)
                continue
            case.clean += 1
            if case.clean >= _CLEAN_PASSES and not _swept(case) and self._close(case):
                self.pending.remove(case)
        stuck = bool(self.pending) and all(case.stuck for case in self.pending)
        pause = _STUCK_PAUSE_S if stuck else _PAUSES[min(self._passes, len(_PAUSES) - 1)]
        self._passes += 1
        self._due = time.monotonic() + pause

    def _open(self, attempt_id: str) -> None:
        try:
            self.pending.append(_Case(attempt_id))
        except OSError:
            return  # it never had a journal
        self._news.send("lost", attempt_id)

    def _end_strangers(self) -> set[int | None]:
        """Kill and reap direct children that are no supervisors; the tags of all there were."""
        tags: set[int | None] = set()
        for pid in process_table.own_children():
            if pid not in self._pool.by_pid:
                tag = process_table.tag(pid)
                tags.add(tag)
                self._end_stranger(pid, [case for case in self.pending if case.tag == tag])
        return tags

    def _end_stranger(self, pid: int, cases: list[_Case]) -> None:
        info = os.waitid(os.P_PID, pid, _PEEK)
        if info is None:
            for case in cases:
                case.remember_shared_memory(pid)
                case.killed_at = case.killed_at or time.time()
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            return
        for case in self.pending:
            job = case.main(pid)
            if job is not None and not _record_main(case, job, info):
                return  # a full disk: it stays a zombie until its status is on record
        os.waitpid(pid, 0)
        for case in cases:
            case.ended.add(pid)

    def _report_if_stuck(self, case: _Case) -> None:
        if case.stuck or time.monotonic() < case.stuck_at:
            return
        case.stuck = True
        strangers = [p for p in process_table.own_children() if p not in self._pool.by_pid]
        stuck = [process_table.describe(p) for p in strangers if process_table.tag(p) == case.tag]
        with contextlib.suppress(OSError):
            journal.append(case.folder, "stuck", {"processes": stuck})
        self._news.send("stuck", case.attempt_id, processes=stuck)

    def _close(self, case: _Case) -> bool:
        """Write the exit record; False if that cannot be done now."""
        fields = end_record.outside(
            journal.read(case.folder),
            stop_request.read(case.folder),
            by="keeper",
            group=case.group,
        )
        fields["processes_ended"] = len(case.ended)
        fields["signals"] = end_record.killed(case.killed_at)
        fields["shm_bytes"] = shared_memory.remove(case.mapped) if case.mapped else 0
        fields.update(end_record.tidied(case.folder, case.group))
        return write_exit(case.attempt_id, self._news, fields)


def write_exit(attempt_id: str, sender: NewsSender, fields: dict[str, Any]) -> bool:
    """The keeper's exit record; whoever was first, the server is told."""
    folder = f"{protocol.ATTEMPTS}/{attempt_id}"
    try:
        journal.append(folder, "exit", fields, once=True, sync=True)
        sender.send("ended", attempt_id, exit=journal.read(folder).exit)
    except FileNotFoundError:
        return True  # the attempt was removed
    except OSError:
        return False
    return True


def _record_main(case: _Case, job: journal.Record, info: os.waitid_result) -> bool:
    """What the dead supervisor recorded stays: it may have seen a stop that we did not."""
    rank = {"rank": job["rank"]} if "rank" in job else {}
    fields = {**rank, **end_record.status_of(info), "ended_at": time.time(), "by": "keeper"}
    try:
        with journal.opened(case.folder) as appender:
            end_record.append_main(appender, fields)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def _swept(case: _Case) -> bool:
    """Kill what belongs to the attempt but is nobody's child here; True if there was any."""
    living = case.claims.living()
    for pid, name in living.items():
        case.mapped.update(shared_memory.mapped_by((pid,)))
        case.killed_at = case.killed_at or time.time()
        case.claims.kill(pid, name)
    if living:
        case.clean = 0
    return bool(living)
