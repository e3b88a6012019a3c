"""At start and every 30 s: make the store and what really lives agree.

Adopts living attempts, records ends nobody heard of, repeats stop requests that may not have
arrived, and closes attempts that were placed but never handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from runyard.domain import events, reasons
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.alert import CANNOT_BE_KILLED, AlertLevel, NewAlert
from runyard.domain.preparation import Preparation
from runyard.domain.states import AttemptStatus
from runyard.engine import server_log
from runyard.engine.cancel import cancel_reasons
from runyard.engine.commands import Commands
from runyard.engine.end.ending import Ender
from runyard.engine.parts import Parts
from runyard.engine.takeover import Takeover
from runyard.engine.units import unit_of
from runyard.engine.watch import alerting
from runyard.executors.base import End, Sight, Sighting, Stop, Swept
from runyard.stores.base import Transaction

# Between the commit of a placement and its hand-over an attempt is absent without being lost.
_HAND_OVER_S = 10.0
_ACTOR = "reconciler"
_STOPS = (events.JOB_CANCELLING, events.JOB_FORCE_KILLED, events.JOB_STOPPING)


@dataclass(frozen=True, slots=True)
class Found:
    """What a round saw, for the log and for tests."""

    running: int = 0
    ended: int = 0
    never_started: int = 0


class Reconciler:
    def __init__(
        self,
        parts: Parts,
        ender: Ender,
        commands: Commands,
        record: Callable[[list[tuple[str, End]]], None],
    ) -> None:
        self._parts = parts
        self._ender = ender
        self._commands = commands
        self._record = record
        self._takeover = Takeover(parts)
        # Attempts that are placed and not handed over yet for a reason that is known.
        self.is_on_its_way: Callable[[str], bool] = lambda _attempt_id: False
        self._adopted: list[tuple[Attempt, Sighting]] = []

    def adopt(self) -> Found:
        """The round at a start: nothing can be on its way to an executor."""
        found = self._round(patience_s=0.0)
        if found != Found():
            self._note_adopted()
            server_log.of().info(
                "adopted {} running attempts; {} ended while no server ran, {} never started",
                found.running,
                found.ended,
                found.never_started,
            )
        return found

    def round(self) -> Found:
        if self._parts.store.shared:
            self._takeover.look()
            self._mark_unreachable()
        return self._round(patience_s=_HAND_OVER_S)

    def _round(self, patience_s: float) -> Found:
        now = self._parts.clock()
        with self._parts.store.read() as reader:
            # A store that only we use may come from another data directory (a restored backup):
            # its attempts are ours to settle then.
            own = self._parts.node_id if self._parts.store.shared else None
            attempts = reader.live_attempts(own)
            jobs = {job.id: job for job in reader.jobs_by_id([a.job_id for a in attempts])}
        ends: list[tuple[str, End]] = []
        running = never = 0
        sightings = self._inspect(attempts)
        traceless = self._traceless(attempts, sightings, now - patience_s)
        for attempt in attempts:
            seen = sightings.get(attempt.attempt_id)
            if seen is None:
                log = server_log.of(jobs[attempt.job_id].ref, attempt.attempt_id)
                log.error("there is no {} executor here to ask about it", attempt.executor)
            elif seen.sight is Sight.ENDED and seen.end is not None:
                ends.append((attempt.attempt_id, seen.end))
            elif seen.sight is Sight.ABSENT:
                swept = traceless.get(attempt.attempt_id)
                if swept is None:
                    continue
                if swept.living:
                    self.stuck(attempt.attempt_id, swept.living)
                elif self._refuse(attempt):
                    never += 1
                    ends.append((attempt.attempt_id, _absent(attempt, now, swept.killed)))
            else:
                running += 1
                self._catch_up(attempt, jobs[attempt.job_id], seen, adopted=patience_s == 0.0)
        if ends:
            self._record(ends)
        return Found(running, len(ends) - never, never)

    def _inspect(self, attempts: list[Attempt]) -> dict[str, Sighting]:
        seen: dict[str, Sighting] = {}
        for name, executor in self._parts.executors.items():
            seen |= executor.inspect([a.attempt_id for a in attempts if a.executor == name])
        return seen

    def _traceless(
        self, attempts: list[Attempt], seen: Mapping[str, Sighting], before: float
    ) -> dict[str, Swept]:
        """Attempts made before then whose executor has nothing of them: what lives of them is
        found by tag and marker, and ended, before anything is recorded."""
        found: dict[str, Swept] = {}
        for name, executor in self._parts.executors.items():
            lost = {
                attempt.attempt_id: (attempt.tag, attempt.created_at)
                for attempt in attempts
                if attempt.executor == name
                and attempt.created_at <= before
                and not self.is_on_its_way(attempt.attempt_id)
                and (sighting := seen.get(attempt.attempt_id)) is not None
                and sighting.sight is Sight.ABSENT
            }
            if lost:
                found |= executor.sweep_traceless(lost)
        for attempt_id, swept in found.items():
            if swept.killed:
                log = server_log.of(attempt_id.rpartition(".")[0], attempt_id)
                log.warning("its folder is gone: {} processes found by its id", swept.killed)
        return found

    def _refuse(self, attempt: Attempt) -> bool:
        return self._parts.executors[attempt.executor].refuse(attempt.attempt_id)

    def _catch_up(self, attempt: Attempt, job: Job, seen: Sighting, *, adopted: bool) -> None:
        log = server_log.of(job.ref, attempt.attempt_id)
        if attempt.status is AttemptStatus.STARTING and seen.started_at is not None:
            self._ender.started(attempt.attempt_id, seen.started_at)
        if seen.hung_since is not None:
            log.warning("its supervisor has been silent since {}", seen.hung_since)
        if seen.stuck:
            self.stuck(attempt.attempt_id, seen.stuck)
        if attempt.status is AttemptStatus.STOPPING and seen.stop_seq < attempt.stop_seq:
            log.info("repeating a stop request that did not arrive")
            self._commands.pass_on(unit_of(attempt), self._stop_of(attempt, job))
        if job.reason is not None and job.reason.code == reasons.NODE_UNREACHABLE:
            self._parts.store.write(lambda tx: cancel_reasons.say_reachable(tx, job.id))
        if adopted:
            log.info("adopted: {} since {}", seen.sight.value, seen.started_at)
            self._adopted.append((attempt, seen))

    def _note_adopted(self) -> None:
        adopted, self._adopted = self._adopted, []
        now = self._parts.clock()

        def work(tx: Transaction) -> None:
            for attempt, seen in adopted:
                told = {"attempt": attempt.number, "pid": seen.pid}
                event = Event(events.JOB_ADOPTED, now, _ACTOR, attempt.attempt_id, told)
                tx.append_event(attempt.job_id, event)

        if adopted:
            self._parts.store.write(work, durable=False)

    def _stop_of(self, attempt: Attempt, job: Job) -> Stop:
        """The request as the events tell it: who asked, when, and whether by force."""
        with self._parts.store.read() as reader:
            asked = [
                stored.event
                for stored in reader.events(job.id)
                if stored.event.attempt_id == attempt.attempt_id and stored.event.code in _STOPS
            ]
        if not asked:
            return Stop(attempt.stop_seq, "user", job.spec.grace_s, "unknown", self._parts.clock())
        last = asked[-1]
        forced = last.code == events.JOB_FORCE_KILLED
        grace = 0.0 if forced else float(last.params.get("grace_s", job.spec.grace_s))
        cause = str(last.params.get("cause", "user"))
        return Stop(attempt.stop_seq, cause, grace, last.actor, last.at)

    def _mark_unreachable(self) -> None:
        """A cancel for an attempt of a silent server stays cancelling, and says why."""
        now, settings = self._parts.store.now(), self._parts.settings
        with self._parts.store.read() as reader:
            silent = {
                node.node_id: node.name
                for node in reader.nodes()
                if node.is_server and now - node.heartbeat_at > settings.server_lease_s
            }
            units: list[Attempt | Preparation] = []
            if silent:
                units = [*reader.live_attempts(), *reader.live_preparations()]
        for unit in units:
            if unit.node_id not in silent:
                continue
            job_id, node = unit.job_id, silent[unit.node_id]
            say = partial(cancel_reasons.say_unreachable, job_id=job_id, node=node)
            self._parts.store.write(say, durable=False)

    def stuck(self, attempt_id: str, processes: Sequence[Mapping[str, Any]]) -> None:
        """Something of an attempt cannot be killed: its job says what, and so does an alert. What
        the attempt holds stays reserved, because nothing has ended."""
        log = server_log.of(attempt_id.rpartition(".")[0], attempt_id)
        log.critical("cannot be killed: {}", [dict(process) for process in processes])
        now = self._parts.clock()

        def work(tx: Transaction) -> None:
            cancel_reasons.say_stuck(tx, attempt_id, processes)
            unit = tx.attempt(attempt_id) or tx.preparation(attempt_id)
            if unit is not None and unit.status is not AttemptStatus.ENDED:
                alerting.open_in(tx, _unkillable(unit, processes), now, _ACTOR)

        self._parts.store.write(work)


def _unkillable(found: Attempt | Preparation, processes: Sequence[Mapping[str, Any]]) -> NewAlert:
    named = [dict(process) for process in processes]
    params: dict[str, Any] = {"processes": named}
    if isinstance(found, Attempt):
        params |= {"gpus": [grant.index for grant in found.gpus], "ports": list(found.ports)}
    unit = unit_of(found)
    return NewAlert(
        key=f"{CANNOT_BE_KILLED}:{unit.name}",
        level=AlertLevel.CRITICAL,
        code=CANNOT_BE_KILLED,
        params=params,
        job_id=found.job_id,
        attempt_id=unit.name,
        node_id=unit.node_id,
        evidence={"processes": named},
    )


def _absent(attempt: Attempt, now: float, killed: int) -> End:
    """Of an attempt whose folder is not there: it never started, or all trace of it is gone."""
    never = attempt.started_at is None and not killed
    cause = "never_started" if never else "supervisor_lost"
    receipt = {"proof": "scan" if killed else "absent", "processes_ended": killed}
    return End(None, None, cause, "reconciler", now, attempt.started_at, receipt=receipt)
