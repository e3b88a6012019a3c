"""Jobs that are cancelling for minutes: people are told, and what is left is looked for again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.domain import errors, events, reasons, states
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.alert import CANCEL_STALE, Alert, AlertLevel, NewAlert
from runyard.domain.preparation import Preparation
from runyard.domain.states import JobStatus
from runyard.engine import server_log
from runyard.engine.cancel import cancel_reasons
from runyard.engine.commands import Commands
from runyard.engine.parts import Parts
from runyard.engine.units import Unit, unit_of
from runyard.engine.watch import alerting
from runyard.executors.base import Stop, Swept
from runyard.stores.base import Transaction

_ACTOR = "reconciler"


@dataclass(frozen=True, slots=True)
class _Stale:
    job: Job
    unit: Unit
    of: Attempt | Preparation
    seconds: float  # since the end was asked for


class StaleCancels:
    def __init__(self, parts: Parts, commands: Commands) -> None:
        self._parts = parts
        self._commands = commands
        self._swept_at: dict[str, float] = {}

    def look(self) -> int:
        """Sweep what is due; how many."""
        now = self._parts.clock()
        stale = self._stale(now)
        for name in self._swept_at.keys() - {one.unit.name for one in stale}:
            del self._swept_at[name]
        every = self._parts.settings.stale_cancelling_s
        due = [one for one in stale if now - self._swept_at.get(one.unit.name, 0.0) >= every]
        for one in due:
            self._swept_at[one.unit.name] = now
            if self._is_own(one.unit):
                self._sweep(one, now)
            elif one.job.reason is not None and one.job.reason.code == reasons.NODE_UNREACHABLE:
                self._tell(one, None, now)
        return len(due)

    def _stale(self, now: float) -> list[_Stale]:
        with self._parts.store.read() as reader:
            units: list[Attempt | Preparation] = [*reader.live_attempts()]
            units += reader.live_preparations()
            jobs = {job.id: job for job in reader.jobs_by_id([unit.job_id for unit in units])}
        found = []
        for unit in units:
            job = jobs.get(unit.job_id)
            if job is None or job.status is not JobStatus.CANCELLING or job.reason is None:
                continue
            asked_at = job.reason.params.get("requested_at", unit.created_at)
            over = now >= job.reason.params.get("until", 0.0)
            if over and now - asked_at >= self._parts.settings.stale_cancelling_s:
                found.append(_Stale(job, unit_of(unit), unit, now - asked_at))
        return found

    def _is_own(self, unit: Unit) -> bool:
        return not self._parts.store.shared or unit.node_id == self._parts.node_id

    def _sweep(self, stale: _Stale, now: float) -> None:
        try:
            stop = self._parts.store.write(lambda tx: _ask_again(tx, stale))
        except errors.StaleWrite:
            return  # it has just ended
        executor = self._parts.executors.get(stale.unit.executor)
        if executor is None:
            self._tell(stale, None, now)
            return
        self._commands.pass_on(stale.unit, stop)
        self._tell(stale, executor.sweep([stale.unit.name]).get(stale.unit.name), now)

    def _tell(self, stale: _Stale, swept: Swept | None, now: float) -> None:
        job, unit = stale.job, stale.unit
        holders = [dict(process) for process in swept.living] if swept else []
        killed = swept.killed if swept else 0
        alert = _alert(stale, holders, killed if swept else None, now)

        def work(tx: Transaction) -> Alert | None:
            current = tx.job(job.id)
            if current is None:
                return None
            if swept is not None:
                params = {"seconds": round(stale.seconds), "killed": killed, "living": holders}
                event = Event(events.JOB_SWEPT, now, _ACTOR, unit.name, params)
                tx.append_event(job.id, event)
            opened = alerting.open_in(tx, alert, now, _ACTOR)
            if current.status is not JobStatus.CANCELLING:
                # The sweep helped at once; that it was needed is still worth a record.
                alerting.close_in(tx, alert.key, now, _ACTOR)
            return opened

        opened = self._parts.store.write(work)
        if swept is not None:
            server_log.of(job.ref, unit.name).critical(
                "swept again: still cancelling after {} s, {} processes killed, left: {}",
                round(stale.seconds),
                killed,
                holders,
            )
        if opened is not None:
            alerting.tell(opened)


def _ask_again(tx: Transaction, stale: _Stale) -> Stop:
    """The same request once more, without grace."""
    seq = stale.of.stop_seq + 1
    if isinstance(stale.of, Attempt):
        tx.update_attempt(stale.unit.name, states.LIVE, stop_seq=seq)
    else:
        tx.update_preparation(stale.unit.name, states.LIVE, stop_seq=seq)
    params: Mapping[str, Any] = stale.job.reason.params if stale.job.reason else {}
    by, at = cancel_reasons.requested(stale.job.reason)
    cause = str(params.get("cause") or "user")
    return Stop(seq, cause, 0.0, str(by or "unknown"), at or stale.of.created_at)


def _alert(
    stale: _Stale, holders: list[dict[str, Any]], killed: int | None, now: float
) -> NewAlert:
    job, reason = stale.job, stale.job.reason
    params = {
        "job": job.ref,
        "seconds": round(stale.seconds),
        "by": reason.params.get("by") if reason else None,
        "waits_for": reason.code if reason else None,
        "holders": holders,
    }
    swept = {"action": "swept", "at": now, "killed": killed}
    return NewAlert(
        key=f"{CANCEL_STALE}:{stale.unit.name}",
        level=AlertLevel.CRITICAL,
        code=CANCEL_STALE,
        params=params,
        job_id=job.id,
        attempt_id=stale.unit.name,
        node_id=stale.unit.node_id,
        evidence=dict(reason.params) if reason else {},
        actions_taken=() if killed is None else (swept,),
    )
