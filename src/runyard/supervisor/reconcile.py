"""Settling attempts from outside: what the server does about those it has no news of.

A living supervisor is never disturbed. Where there is none, what belongs to the attempt is ended
and the exit record is written, unless somebody else writes it first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from typing import Any

from runyard.supervisor import (
    attempt_group,
    belonging,
    end_record,
    identity,
    journal,
    liveness,
    process_table,
    protocol,
    shared_memory,
    stop_request,
)

ABSENT, ALIVE, ENDED, LOST = "absent", "alive", "ended", "lost"
UNREADABLE = "unreadable"  # written by another version, and nobody who knows it is alive

_KEEPER_GRACE_S = 2.0
_CLEAN_PASSES = 3
_PASS_PAUSE_S = 0.1
_SWEEP_LIMIT_S = 10.0
_LAST_BREATH_S = 2.0


class Sight:
    """What one look at an attempt's folder showed."""

    __slots__ = ("journal", "state")

    def __init__(self, state: str, record: journal.Journal) -> None:
        self.state = state
        self.journal = record


def look(folder: str) -> Sight:
    """One of the five states; changes nothing."""
    try:
        fd = os.open(f"{folder}/{protocol.JOURNAL}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Sight(ABSENT, journal.Journal())
    try:
        # The lock before the records: one that ends in between is seen as ended, not as lost.
        alive = liveness.held(fd)
        record = journal.read_open(fd)
    finally:
        os.close(fd)
    if record.exit is not None:
        return Sight(ENDED, record)
    if alive:
        return Sight(ALIVE, record)
    return Sight(UNREADABLE if record.foreign else LOST, record)


def look_at_all(folders: Iterable[str]) -> dict[str, Sight]:
    return {folder: look(folder) for folder in folders}


def settle(folder: str, keeper_alive: bool = False) -> journal.Record | None:
    """The exit record of the attempt, written here if need be; None while it lives, and while
    something of it cannot be killed."""
    return settle_all([folder], keeper_alive)[folder]


def settle_all(
    folders: Iterable[str], keeper_alive: bool = False
) -> dict[str, journal.Record | None]:
    """As `settle`, for many at the cost of one: the sweeps are shared."""
    sights = look_at_all(folders)
    lost = [folder for folder, sight in sights.items() if sight.state == LOST]
    if lost and keeper_alive:
        _wait_for_keeper(lost, sights)
        lost = [folder for folder in lost if sights[folder].state == LOST]
    to_sweep = []
    for folder in lost:
        first = sights[folder].journal.first_process
        if first is None or not identity.same_machine_life(first):
            _conclude(folder, sights[folder], {})
        else:
            to_sweep.append(folder)
    if to_sweep:
        for folder, found in _sweep_until_clean(to_sweep, sights).items():
            _conclude(folder, sights[folder], found)
    return {folder: sight.journal.exit for folder, sight in sights.items()}


def sweep_again(folders: Iterable[str]) -> int:
    """Look once more for processes of attempts that were settled here; how many were killed. A
    process that forks and exits all the time can slip through single sweeps."""
    sights = look_at_all(folders)
    claims = _claims({f: s for f, s in sights.items() if s.state in (LOST, ENDED)})
    living = claims.living()
    for pid, name in living.items():
        claims.kill(pid, name)
    return len(living)


def sweep_asked(folders: Iterable[str]) -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """Kill what is found of attempts whose end was asked for, also below a living supervisor: how
    many there were, and those that live on. A supervisor that was stopped is let go on."""
    sights = look_at_all(f for f in folders if stop_request.read(f) is not None)
    for sight in sights.values():
        if sight.state == ALIVE and sight.journal.supervisor is not None:
            _continue(sight.journal.supervisor)
    claims = _claims(sights)
    found = claims.living()
    deadline = time.monotonic() + _LAST_BREATH_S
    left = found
    while left and time.monotonic() < deadline:
        for pid, folder in left.items():
            claims.kill(pid, folder)
        time.sleep(_PASS_PAUSE_S)
        left = claims.living()
    return {
        folder: (
            sum(1 for name in found.values() if name == folder),
            [process_table.describe(pid) for pid, name in left.items() if name == folder],
        )
        for folder in sights
    }


def sweep_traceless(
    attempts: Mapping[str, tuple[int, float]],
) -> dict[str, tuple[int, list[dict[str, Any]]]]:
    """The last resort, for attempts whose folder is gone: with nothing but their id, their tag
    and when they were made, find what lives of them, and kill until three looks in a row found
    nothing. How many there were of each, and those that live on."""
    claims = belonging.Claims(
        {
            attempt_id: belonging.Claim(attempt_id, tag, identity.ticks_at(made_at))
            for attempt_id, (tag, made_at) in attempts.items()
        }
    )
    seen: dict[str, set[int]] = {attempt_id: set() for attempt_id in attempts}
    deadline = time.monotonic() + _SWEEP_LIMIT_S
    clean = 0
    left: dict[int, str] = {}
    while clean < _CLEAN_PASSES and time.monotonic() < deadline:
        left = claims.living()
        for pid, attempt_id in left.items():
            seen[attempt_id].add(pid)
            claims.kill(pid, attempt_id)
        clean = 0 if left else clean + 1
        time.sleep(_PASS_PAUSE_S)
    return {
        attempt_id: (
            len(pids),
            [process_table.describe(pid) for pid, name in left.items() if name == attempt_id],
        )
        for attempt_id, pids in seen.items()
    }


def _continue(supervisor: journal.Record) -> None:
    pidfd = identity.open_verified(supervisor)
    if pidfd is not None:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(pidfd, signal.SIGCONT)
        os.close(pidfd)


def _wait_for_keeper(lost: list[str], sights: dict[str, Sight]) -> None:
    """The keeper takes over within milliseconds; also, a supervisor may just be starting."""
    deadline = time.monotonic() + _KEEPER_GRACE_S
    while any(sights[folder].state == LOST for folder in lost):
        for folder in lost:
            if sights[folder].state == LOST:
                sights[folder] = look(folder)
        if time.monotonic() >= deadline:
            return
        time.sleep(0.02)


def _claims(sights: dict[str, Sight]) -> belonging.Claims:
    """Only of this boot and pid namespace: recorded numbers mean nothing elsewhere."""
    return belonging.Claims(
        {
            folder: belonging.recorded(os.path.basename(folder), sight.journal)
            for folder, sight in sights.items()
            if sight.journal.spec is not None
            and (first := sight.journal.first_process) is not None
            and identity.same_machine_life(first)
        }
    )


def _sweep_until_clean(folders: list[str], sights: dict[str, Sight]) -> dict[str, dict[str, Any]]:
    """Kill what belongs to the attempts until three looks in a row found nothing of them."""
    claims = _claims({folder: sights[folder] for folder in folders})
    clean = dict.fromkeys(folders, 0)
    killed: dict[str, set[int]] = {folder: set() for folder in folders}
    began: dict[str, float] = {}
    mapped: dict[str, shared_memory.Mapped] = {folder: {} for folder in folders}
    groups = {folder: _group(sights[folder]) for folder in folders}
    deadline = time.monotonic() + _SWEEP_LIMIT_S
    while min(clean.values()) < _CLEAN_PASSES and time.monotonic() < deadline:
        living = claims.living() | _members(groups)
        for pid, folder in living.items():
            mapped[folder].update(shared_memory.mapped_by((pid,)))
        for pid, folder in living.items():
            claims.kill(pid, folder)
            killed[folder].add(pid)
            began.setdefault(folder, time.time())
        busy = set(living.values()) | _killed_as_group(groups)
        for folder in folders:
            clean[folder] = 0 if folder in busy else clean[folder] + 1
        time.sleep(0.002 if busy else _PASS_PAUSE_S)
    _report_stuck([f for f in folders if clean[f] < _CLEAN_PASSES], claims)
    return {
        folder: {
            "processes_ended": len(killed[folder]),
            "signals": end_record.killed(began.get(folder)),
            "shm_bytes": shared_memory.remove(mapped[folder]) if mapped[folder] else 0,
        }
        for folder in folders
        if clean[folder] >= _CLEAN_PASSES
    }


def _group(sight: Sight) -> attempt_group.Group | None:
    """The attempt's group as recorded; other boots and containers have other groups."""
    record = sight.journal.group
    if record is None or not identity.same_machine_life(record):
        return None
    return attempt_group.Group(record["paths"])


def _members(groups: dict[str, attempt_group.Group | None]) -> dict[int, str]:
    return {pid: f for f, group in groups.items() if group is not None for pid in group.members()}


def _killed_as_group(groups: dict[str, attempt_group.Group | None]) -> set[str]:
    """The attempts of which something lived in their group. A frozen one is thawed for it."""
    busy = set()
    for folder, group in groups.items():
        if group is not None and group.populated():
            group.kill()
            busy.add(folder)
    return busy


def _report_stuck(folders: list[str], claims: belonging.Claims) -> None:
    if not folders:
        return
    living = claims.living()
    for folder in folders:
        pids = [pid for pid, name in living.items() if name == folder]
        processes = [process_table.describe(pid) for pid in pids]
        with contextlib.suppress(OSError):
            known = journal.read(folder).stuck
            if known is None or {p["pid"] for p in known["processes"]} != set(pids):
                journal.append(folder, "stuck", {"processes": processes})


def _conclude(folder: str, sight: Sight, found: dict[str, Any]) -> None:
    """Write the exit record, unless a supervisor took the attempt after all."""
    record = sight.journal
    first = record.first_process
    group = _group(sight)
    fields = end_record.outside(
        record,
        stop_request.read(folder),
        by="reconciler",
        same_life=first is None or identity.same_machine_life(first),
        group=group,
    )
    fields.update(found)

    def taken() -> bool:
        """Asked while nobody else can append: after a "no" no supervisor can take it any more."""
        if liveness.supervisor_alive(folder):
            return True
        fields.update(end_record.tidied(folder, group))
        return False

    with contextlib.suppress(OSError):  # a full disk: it stays unsettled until the next time
        journal.append(folder, "exit", fields, once=True, sync=True, unless=taken)
        sight.journal = journal.read(folder)
