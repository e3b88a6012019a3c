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
    end_record,
    identity,
    journal,
    process_table,
    protocol,
    stop_request,
    temporary,
)
from runyard.supervisor.keeper_pool import Pool
from runyard.supervisor.news import NewsSender

_PEEK = os.WEXITED | os.WNOWAIT | os.WNOHANG
_CLEAN_PASSES = 3
_PAUSES = (0.002, 0.005, 0.01, 0.02, 0.05)


class _Case:
    """One attempt whose supervisor died."""

    __slots__ = ("attempt_id", "clean", "ended", "job", "tag")

    def __init__(self, attempt_id: str) -> None:
        self.attempt_id = attempt_id
        self.clean = 0
        self.ended = 0
        record = journal.read(f"{protocol.ATTEMPTS}/{attempt_id}")
        self.job = record.job
        self.tag = record.spec["tag"] if record.spec else None


class Takeovers:
    __slots__ = ("_news", "_passes", "_pool", "pending")

    def __init__(self, pool: Pool, sender: NewsSender) -> None:
        self._pool = pool
        self._news = sender
        self._passes = 0
        self.pending: list[_Case] = []

    @property
    def pause(self) -> float:
        return _PAUSES[min(self._passes, len(_PAUSES) - 1)]

    def attempt_ids(self) -> list[str]:
        return [case.attempt_id for case in self.pending]

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
        self.step()

    def step(self) -> None:
        """One pass over the keeper's unknown children; the record for every case proven empty."""
        self._passes += 1
        tags_alive = self._end_strangers()
        for case in list(self.pending):
            if tags_alive and (case.tag in tags_alive or None in tags_alive):
                case.clean = 0
                continue
            case.clean += 1
            if case.clean >= _CLEAN_PASSES and not _sweep(case):
                self.pending.remove(case)
                self._close(case)

    def _open(self, attempt_id: str) -> None:
        try:
            self.pending.append(_Case(attempt_id))
        except OSError:
            return  # never had a journal
        self._news.send("lost_sight", attempt_id)

    def _end_strangers(self) -> set[int | None]:
        """Kill and reap direct children that are no supervisors; the tags of those still there."""
        alive: set[int | None] = set()
        for pid in process_table.own_children():
            if pid in self._pool.by_pid:
                continue
            info = os.waitid(os.P_PID, pid, _PEEK)
            if info is None:
                alive.add(process_table.tag(pid))
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            else:
                alive.add(self._settle_zombie(info))
        return alive

    def _settle_zombie(self, info: os.waitid_result) -> int | None:
        """Record the status if it was a main process, then reap. Its limits tell its attempt."""
        tag = process_table.tag(info.si_pid)
        ticks = identity.start_ticks(info.si_pid)
        for case in self.pending:
            job = case.job
            if job is not None and job["pid"] == info.si_pid and job["start_ticks"] == ticks:
                tag = case.tag
                fields = {**end_record.status_of(info), "ended_at": time.time(), "by": "keeper"}
                folder = f"{protocol.ATTEMPTS}/{case.attempt_id}"
                try:
                    journal.append(folder, "main_exit", fields, once=True, sync=True)
                except OSError:
                    return tag  # a full disk: it stays a zombie until the status is on record
            elif tag is not None and case.tag == tag:
                case.ended += 1
        os.waitpid(info.si_pid, 0)
        return tag

    def _close(self, case: _Case) -> None:
        folder = f"{protocol.ATTEMPTS}/{case.attempt_id}"
        record = journal.read(folder)
        removed = temporary.remove(f"{folder}/{protocol.TEMPORARY}")
        fields = {**outcome(record, stop_request.read(folder)), "temp_removed": removed}
        fields["processes_ended"] = case.ended + (1 if record.job else 0)
        write_exit(case.attempt_id, self._news, fields)


def outcome(record: journal.Journal, stop: stop_request.Request | None) -> dict[str, Any]:
    """Code, signal and cause of an attempt whose supervisor is dead and whose tree is empty."""
    if record.job is None:
        return {"cause": "never_started"}
    main = record.main_exit
    if main is None:
        return {"cause": "supervisor_lost", "started_at": record.job["started_at"], "stop": stop}
    fields = {name: main.get(name) for name in ("code", "signal", "core", "ended_at")}
    fields["started_at"] = record.job["started_at"]
    fields["stop"] = main.get("stop") or stop
    if main.get("stop"):
        fields["cause"] = "timeout" if main["stop"]["cause"] == "timeout" else "cancelled"
    elif main.get("by") is not None and main["signal"] == signal.SIGKILL:
        fields["cause"] = "supervisor_lost"  # it died with its supervisor
    else:
        fields["cause"] = "exited"
    return fields


def write_exit(attempt_id: str, sender: NewsSender, fields: dict[str, Any]) -> None:
    """The keeper's exit record; whoever was first, the server is told."""
    folder = f"{protocol.ATTEMPTS}/{attempt_id}"
    full = {
        "code": None,
        "signal": None,
        "by": "keeper",
        "proof": "scan",
        "started_at": None,
        "ended_at": time.time(),
        "signals": [],
        "stuck": [],
        "shm_bytes": 0,
        **fields,
    }
    try:
        journal.append(folder, "exit", full, once=True, sync=True)
        sender.send("ended", attempt_id, exit=journal.read(folder).exit)
    except OSError:
        pass  # the server finds no supervisor and settles it


def _sweep(case: _Case) -> bool:
    """Processes with the attempt's tag that are nobody's child here; True if there were any."""
    if case.tag is None or case.job is None:
        return False
    found = False
    skip = process_table.ancestors_and_self()
    for pid in process_table.pids():
        if pid in skip or process_table.tag(pid) != case.tag or not process_table.alive(pid):
            continue
        found = True
        _kill_tagged(pid, case.tag)
    return found


def _kill_tagged(pid: int, tag: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if process_table.tag(pid) == tag:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(pidfd)
