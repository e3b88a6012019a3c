"""What follows a failure: a plan for the next attempt, or the reason why there is none."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runyard.domain import ending, events, reasons, retrying
from runyard.domain.checkpoints.record import CheckpointVerdict
from runyard.domain.ending import Verdict
from runyard.domain.events import Event
from runyard.domain.failures import diagnosis as diagnoses
from runyard.domain.failures.categories import Category
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt, Job, JobSpec
from runyard.domain.reasons import Reason
from runyard.domain.recovery import backoff, ledger, overrides, plan_reasons, policy, space
from runyard.domain.recovery import plan as plans
from runyard.domain.recovery.adjustments import Adjustments
from runyard.domain.recovery.ledger import PastAttempt
from runyard.domain.recovery.overrides import Overrides
from runyard.domain.recovery.plan import Plan
from runyard.domain.recovery.policy import Charge, Strategy
from runyard.domain.recovery.step import Circumstances
from runyard.domain.states import AttemptEnd
from runyard.engine.cancel import unasked_stops
from runyard.engine.launch import starts
from runyard.engine.parts import Parts
from runyard.engine.recover import asked_scale, diagnosing, disk_room
from runyard.engine.schedule import space_waits
from runyard.executors.base import End
from runyard.stores.base import Reader, Transaction

SURE = 0.7  # below it nobody knows, and the job's own max_retries and retry_delays count
_ACTOR = "recovery"
_OF_CHECKPOINTS = frozenset(
    {
        Category.NAN,
        Category.CKPT_CORRUPT,
        Category.CKPT_MISSING,
        Category.CKPT_MISMATCH,
        Category.DISK_FULL,
    }
)
_STARTS = frozenset({ending.EXEC_FAILED, ending.START_FAILED})
# Whoever ended or lost these has decided already how they are tried again.
_DECIDED = frozenset({Category.SERVER_RESTART, Category.STALL, Category.RULE})


def counts_on_checkpoints(diagnosis: Diagnosis) -> bool:
    """Whether the plan depends on which checkpoints are good."""
    return diagnosis.category in _OF_CHECKPOINTS


@dataclass(frozen=True, slots=True)
class Decided:
    plan: Plan
    reason: Reason | None  # of the job, where nothing more is tried


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt that has just failed, and what is known of it."""

    job: Job
    attempt: Attempt
    end: End
    verdict: Verdict
    diagnosis: Diagnosis | None


class Recovery:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decide(self, tx: Reader, failure: Failure) -> Decided:
        attempts = tx.attempts(failure.job.id)
        before = starts.ran_with(attempts, failure.attempt.number)
        job, verdict, diagnosis = failure.job, failure.verdict, failure.diagnosis
        if unasked_stops.is_final(job, verdict.reason):
            return _plain(retrying.GiveUp(verdict.reason), before, diagnosis)
        ordinary = self._ordinary(failure, attempts)
        hopeless = retrying.is_hopeless(failure.end.cause, failure.end.detail)
        unstarted = failure.end.cause in _STARTS  # of the machine; the job itself did nothing yet
        if diagnosis is None or hopeless or unstarted or job.spec.max_retries == 0:
            return _plain(ordinary, before, diagnosis)
        history = past(job, attempts, failure.attempt.number, diagnosis)
        wanted = overrides_of(job.spec)
        if _is_ordinary(diagnosis, wanted):
            if diagnosis.root is not None and isinstance(ordinary, retrying.Retry):
                times = ledger.same_root(history)
                if times >= policy.SAME_ROOT_LIMIT:
                    told = _same_again(history[-1], times)
                    return _decided(Plan(Strategy.GIVE_UP, told, adjustments=before), failure)
            return _plain(ordinary, before, diagnosis)
        made = plans.plan(
            diagnosis,
            job.spec,
            history,
            wanted,
            adjustments=before,
            circumstances=self.circumstances(tx, failure.attempt, diagnosis),
            delays=self._parts.settings.retry_delays,
            jitter=self._jitter(),
        )
        return _decided(made, failure)

    def circumstances(
        self, reader: Reader, attempt: Attempt, diagnosis: Diagnosis
    ) -> Circumstances:
        """What can be counted on; looked up only where the category makes use of it."""
        good, resumed = None, False
        if counts_on_checkpoints(diagnosis):
            good = tuple(
                one.step
                for one in reader.checkpoints(attempt.job_id)
                if one.verdict is CheckpointVerdict.GOOD
            )
            resumed = any(
                one.event.code == events.CHECKPOINT_CHOSEN
                and one.event.attempt_id == attempt.attempt_id
                for one in reader.events(attempt.job_id)
            )
        spare = diagnosis.category is Category.PORT_IN_USE
        wanted = None
        if diagnosis.category is Category.DISK_FULL:
            wanted = self._room_wanted(reader, attempt, diagnosis)
        asks = diagnosis.category is Category.GPU_OOM and asked_scale.is_heeded(
            self._parts, reader, attempt, diagnosis
        )
        return Circumstances(
            good_steps=good,
            resumed=resumed,
            asks_batch_scale=asks,
            spare_port=_free_port() if spare else None,
            gpus=tuple(grant.uuid for grant in attempt.gpus),
            wanted_bytes=wanted,
        )

    def _room_wanted(self, reader: Reader, attempt: Attempt, diagnosis: Diagnosis) -> int:
        sizes = (one.size_bytes for one in reader.checkpoints(attempt.job_id))
        job = reader.job(attempt.job_id)
        total = None
        if job is not None:
            named = diagnosis.facts.get("path")
            path = space_waits.disk_path(job, named, str(self._parts.settings.data_dir))
            total = disk_room.total_bytes(path)
        return space.wanted_bytes(max(sizes, default=None), total)

    def was_repaired(self, tx: Reader, job: Job) -> bool:
        """Whether a plan had changed something since a person last asked for it."""
        return any(
            (one.plan or {}).get("changes")
            for one in tx.attempts(job.id)
            if one.created_at >= job.queued_at
        )

    def fence(self, tx: Transaction, job: Job, attempt: Attempt, made: Plan, now: float) -> None:
        """GPUs that are suspected get no further job until a person looked at them."""
        why = f"{made.reason.params.get('category')} of {job.ref}"
        parts = attempt.slices or (attempt,)
        machine_of = {grant.uuid: part.machine_id for part in parts for grant in part.gpus}
        for uuid in made.fence:
            tx.fence_gpu(machine_of.get(uuid, attempt.machine_id), uuid, why, now)
            tx.append_event(
                None,
                Event(events.GPU_FENCED, now, _ACTOR, attempt.attempt_id, {"gpu": uuid}),
            )
            if attempt.machine_id == self._parts.machine.machine_id:
                self._parts.machine.fence(uuid, why)

    def _ordinary(
        self, failure: Failure, attempts: Sequence[Attempt]
    ) -> retrying.Retry | retrying.GiveUp:
        """As long as nobody knows better: max_retries with retry_delays."""
        job, end, verdict = failure.job, failure.end, failure.verdict
        return retrying.decide(
            verdict.end,
            end.cause,
            charged=job.charged,
            max_retries=job.spec.max_retries,
            free=_free_in_a_row(job, attempts),
            delays=backoff.delays_of(job.spec.retry_delays, self._parts.settings.retry_delays),
            jitter=self._jitter(),
            detail=end.detail,
            reason=verdict.reason,
        )

    def _jitter(self) -> float:
        return int.from_bytes(self._parts.random(2), "big") / 65536


def overrides_of(spec: JobSpec) -> Overrides:
    return overrides.read(spec.extra.get("recovery"))


def past(
    job: Job, attempts: Sequence[Attempt], number: int, diagnosis: Diagnosis
) -> list[PastAttempt]:
    """The failures since a person last asked for the job; the last is that of `number`."""
    found = []
    for one in attempts:
        if one.created_at < job.queued_at or one.number > number:
            continue
        known = diagnosis if one.number == number else None
        if known is None and one.diagnosis:
            known = diagnoses.from_mapping(one.diagnosis)
        if known is None:
            continue
        found.append(
            PastAttempt(
                one.number,
                known.category,
                known.fingerprint,
                known.facts.get("step"),
                starts.ran_with(attempts, one.number).settings,
                bool((one.plan or {}).get("charged")),
                one.end is AttemptEnd.NEVER_STARTED,
            )
        )
    return found


def summary(made: Plan) -> dict[str, Any]:
    """What an event says of it."""
    return {
        "strategy": made.strategy.value,
        "code": made.reason.code,
        "changes": [asdict(change) for change in made.changes],
    }


def is_worth_telling(diagnosis: Diagnosis | None, made: Plan) -> bool:
    known = diagnosis is not None and diagnosis.category is not Category.UNKNOWN
    return known or bool(made.changes)


def in_words(diagnosis: Diagnosis | None, made: Plan) -> tuple[str, str]:
    """For the server's log."""
    why = "unknown" if diagnosis is None else diagnosis.category.value
    changes = ", ".join(f"{one.name} {one.before} -> {one.after}" for one in made.changes)
    then = f"{made.strategy.value} ({made.reason.code})"
    return why, f"{then}, {changes}" if changes else then


def _is_ordinary(diagnosis: Diagnosis, wanted: Overrides) -> bool:
    """Whether the policy knows nothing that max_retries and retry_delays do not."""
    if wanted.of(diagnosis) is not None:
        return False
    row = policy.ROWS[diagnosis.category]
    if diagnosis.confidence < SURE or diagnosis.category in _DECIDED:
        return True
    return row.strategy is Strategy.RETRY_SAME and row.charge is Charge.YES


def _plain(
    decision: retrying.Retry | retrying.GiveUp, before: Adjustments, diagnosis: Diagnosis | None
) -> Decided:
    category = (Category.UNKNOWN if diagnosis is None else diagnosis.category).value
    if isinstance(decision, retrying.Retry):
        made = Plan(
            Strategy.RETRY_SAME,
            Reason(plan_reasons.RETRY_SAME, {"category": category}),
            adjustments=before,
            delay_s=decision.delay_s,
            charged=decision.charged,
        )
        return Decided(made, None)
    why = decision.reason
    if why is None or why.code != reasons.RETRIES_USED_UP:
        why = Reason(plan_reasons.NOT_RETRYABLE, {"category": category})
    else:
        told = {"category": category, "max_retries": why.params.get("max_retries")}
        why = Reason(plan_reasons.RETRIES_USED_UP, told)
    return Decided(Plan(Strategy.GIVE_UP, why, adjustments=before), decision.reason)


def _decided(made: Plan, failure: Failure) -> Decided:
    if made.retries:
        return Decided(made, None)
    last = failure.verdict.reason
    told = None if last is None else {"code": last.code, "params": dict(last.params)}
    known = {} if failure.diagnosis is None else diagnosing.summary(failure.diagnosis)
    return Decided(made, Reason(made.reason.code, {**made.reason.params, **known, "last": told}))


def _same_again(last: PastAttempt, times: int) -> Reason:
    told = {"times": times, "fingerprint": last.fingerprint, "step": last.step}
    return Reason(plan_reasons.SAME_ROOT_AGAIN, {"category": last.category.value, **told})


def _free_in_a_row(job: Job, attempts: Sequence[Attempt]) -> int:
    """How many attempts before the one that ends now were lost without the job's own fault, since
    a person last asked for it."""
    count = 0
    for attempt in reversed(attempts[:-1]):
        lost = attempt.end in (AttemptEnd.LOST, AttemptEnd.NEVER_STARTED)
        if not lost or attempt.created_at < job.queued_at:
            break
        count += 1
    return count


def _free_port() -> int | None:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])
    except OSError:
        return None
