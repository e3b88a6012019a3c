"""Ending the tree: peek, record, reap; leftovers; kill direct children until there are none."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from runyard.supervisor import belonging, namespace, process_table, shared_memory
from runyard.supervisor.host import SIGNALS

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt
    from runyard.supervisor.attempt_group import Group
    from runyard.supervisor.services import Services

_PEEK = os.WEXITED | os.WNOWAIT | os.WNOHANG
_TRACKER_PATIENCE_S = 2.0  # on a busy machine they need more than a moment
_TRACKERS = (b"multiprocessing.resource_tracker", b"torch_shm_manager")
_CHECK_RECORD_S = 0.25
_CLEAN_PASSES = 3
_PASS_PAUSE_S = 0.07


def main_ended(attempt: Attempt) -> bool:
    """Reap orphans that came up to us; True once main has ended (it stays a zombie), or the last
    of several ranks (which are recorded and reaped)."""
    gang = attempt.gang
    while (info := os.waitid(os.P_ALL, 0, _PEEK)) is not None:
        if info.si_pid in attempt.mains:
            attempt.reached("peeked")
            if gang is None:
                return True
            if not gang.ended(attempt, info):
                break
        elif attempt.services is not None:
            attempt.services.ended(attempt, info)
        attempt.end.reap(info.si_pid)
        if gang is not None and not attempt.mains:
            return True
    if gang is not None:
        gang.looked()
    return False


def end_tree(attempt: Attempt) -> None:
    """Return when this process has no child left, which the kernel says with ECHILD, and nothing
    lives in the attempt's group, if it has one."""
    if not _reap(attempt):
        if attempt.services is not None and attempt.mains and not _forced(attempt):
            _kill_all_but(attempt, attempt.services)
        if attempt.mains or _forced(attempt) or not _leftovers_left(attempt):
            _kill_until_empty(attempt)
    if attempt.group is not None:
        _empty_group(attempt, attempt.group)
    if not attempt.host.reaps_orphans:
        _sweep_escaped(attempt)


def _empty_group(attempt: Attempt, group: Group) -> None:
    """What is in the group and not below us: where orphans do not come up to us."""
    stuck_at = time.monotonic() + attempt.kill_timeout_s
    while group.populated():
        attempt.end.shared_memory.update(shared_memory.mapped_by(group.members()))
        group.kill()
        _reap(attempt)
        if time.monotonic() >= stuck_at:
            attempt.end.report_stuck(group.members())
        if time.monotonic() >= attempt.next_beat:
            attempt.beat(time.monotonic())
        time.sleep(_PASS_PAUSE_S if time.monotonic() >= stuck_at else 0.001)


def _sweep_escaped(attempt: Attempt) -> None:
    """Orphans did not come up to us, on a Python without ctypes: find them by their proofs."""
    claim = belonging.recorded(attempt.attempt_id, attempt.journal.journal)
    claims = belonging.Claims({attempt.attempt_id: claim})
    stuck_at = time.monotonic() + attempt.kill_timeout_s
    clean = 0
    while clean < _CLEAN_PASSES:
        living = claims.living()
        for pid, name in living.items():
            attempt.end.shared_memory.update(shared_memory.mapped_by((pid,)))
            claims.kill(pid, name)
        clean = 0 if living else clean + 1
        if living and time.monotonic() >= stuck_at:
            attempt.end.report_stuck(list(living))
        if time.monotonic() >= attempt.next_beat:
            attempt.beat(time.monotonic())
        time.sleep(_PASS_PAUSE_S)


def _kill_all_but(attempt: Attempt, services: Services) -> None:
    """Main used up its grace. Services outlive it: they are asked to end once it is gone."""
    deadline = time.monotonic() + attempt.leftover_grace_s
    _remember_shared_memory(attempt)
    attempt.end.signalled("KILL", "main")
    pause = 0.001
    while not _reap(attempt):
        others = [pid for pid in process_table.own_children() if pid not in services.pids()]
        if not others or time.monotonic() >= deadline:
            return
        for pid in others:
            _kill(pid, signal.SIGKILL)
        signal.sigtimedwait((signal.SIGCHLD,), pause)
        pause = min(pause * 2, 0.05)


def _forced(attempt: Attempt) -> bool:
    if attempt.stop is None:
        return False
    if attempt.services is not None:  # they have a grace after main's, if there is any at all
        return bool(attempt.stop.request["grace_s"] <= 0)
    return attempt.stop.forced


def _reap(attempt: Attempt) -> bool:
    """Reap what has ended; True on ECHILD. The main process is recorded before it is reaped."""
    try:
        while (info := os.waitid(os.P_ALL, 0, _PEEK)) is not None:
            if info.si_pid in attempt.mains:
                _record_main(attempt, info)
                attempt.mains.pop(info.si_pid, None)
            elif attempt.services is not None:
                attempt.services.note(info)
            attempt.end.reap(info.si_pid)
    except ChildProcessError:
        return True
    return False


def _record_main(attempt: Attempt, info: os.waitid_result) -> None:
    """The record must be on disk while the kernel still holds the status."""
    while not _recorded(attempt, info):
        # A full disk does not keep the rest of the tree alive.
        for pid in process_table.own_children():
            if pid != info.si_pid:
                _kill(pid, signal.SIGKILL)
        attempt.beat(time.monotonic())
        time.sleep(_CHECK_RECORD_S)


def _recorded(attempt: Attempt, info: os.waitid_result) -> bool:
    if attempt.gang is not None:
        return attempt.gang.ended(attempt, info)
    try:
        attempt.end.record_main(info)
    except OSError:
        return False
    return True


def _leftovers_left(attempt: Attempt) -> bool:
    """Main has ended: what it left is asked to end; True if all did within the leftover grace."""
    deadline = time.monotonic() + attempt.leftover_grace_s
    _remember_shared_memory(attempt)
    asked: set[int] = set()
    pause = 0.002
    while not _reap(attempt):
        now = time.monotonic()
        if now >= deadline or _forced(attempt):
            return False
        for pid in process_table.own_children():
            if pid not in asked and not _is_tracker(pid):
                asked.add(pid)
                _kill(pid, signal.SIGTERM)
                _kill(pid, signal.SIGCONT)
                if len(asked) == 1:
                    attempt.end.signalled("TERM", "leftovers")
                    attempt.host.news.send("finishing", attempt.attempt_id)
        if now >= attempt.next_beat:
            attempt.beat(now)
        attempt.hear(
            signal.sigtimedwait(SIGNALS, min(pause, _patience_ends(attempt, deadline) - now))
        )
        pause = min(pause * 2, 0.05)
    return True


def _patience_ends(attempt: Attempt, deadline: float) -> float:
    """When to look again at the latest: the grace of a stop may end before that of leftovers."""
    if attempt.stop is None or attempt.services is not None:
        return deadline
    return min(deadline, attempt.stop.deadline)


def _kill_until_empty(attempt: Attempt) -> None:
    started = time.monotonic()
    kill_timeout = attempt.kill_timeout_s
    _remember_shared_memory(attempt)
    group = attempt.group
    has_tracker = group is not None and any(map(_is_tracker, group.members()))
    if group is not None:
        group.stop_forks()
    attempt.end.signalled("KILL", "children")
    pause = 0.001
    while True:
        waited = time.monotonic() - started
        spare = waited < _TRACKER_PATIENCE_S
        if group is not None and not (spare and has_tracker) and group.populated():
            group.kill()
        refused = _kill_children(spare_trackers=spare)
        if _reap(attempt):
            return
        if waited >= kill_timeout:
            attempt.end.report_stuck(_undying(attempt))
        elif refused:
            attempt.end.report_stuck(refused)
        if time.monotonic() >= attempt.next_beat:
            attempt.beat(time.monotonic())
        signal.sigtimedwait((signal.SIGCHLD,), pause)
        pause = min(pause * 2, 1.0 if waited > kill_timeout else 0.05)


def _undying(attempt: Attempt) -> list[int]:
    """Of a namespace not its init, which only waits, but what it waits for."""
    if attempt.spec.get("isolation") != namespace.STRICT:
        return process_table.own_children()
    tree = process_table.descendants(os.getpid())
    return [pid for pid in tree if not process_table.children(pid)] or tree


def _kill_children(*, spare_trackers: bool) -> list[int]:
    """One wave; those that the kernel refused to kill."""
    return [
        pid
        for pid in process_table.own_children()
        if not (spare_trackers and _is_tracker(pid)) and not _kill(pid, signal.SIGKILL)
    ]


def _kill(pid: int, number: int) -> bool:
    """Only for direct children: nobody else can reap them, so the number cannot be another's."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _is_tracker(pid: int) -> bool:
    """They remove shared memory and leave by themselves once the others are dead."""
    command = process_table.command_line(pid)
    return any(name in command for name in _TRACKERS)


def _remember_shared_memory(attempt: Attempt) -> None:
    found = shared_memory.mapped_by(process_table.descendants(os.getpid()))
    attempt.end.shared_memory.update(found)
