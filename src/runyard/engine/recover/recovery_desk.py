"""What people can ask of recovery: why a job failed, and another attempt by a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from runyard.domain import errors
from runyard.domain.failures import diagnosis as diagnoses
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt, Job
from runyard.domain.recovery import backoff
from runyard.domain.recovery import plan as plans
from runyard.domain.recovery.plan import Plan
from runyard.domain.recovery.policy import Strategy
from runyard.domain.states import AttemptStatus, JobStatus
from runyard.engine.access.actor import Actor
from runyard.engine.commands import Commands, find
from runyard.engine.launch import starts
from runyard.engine.parts import Parts
from runyard.engine.recover import cache_clearing, recovering
from runyard.engine.recover.diagnosing import Diagnoser
from runyard.engine.recover.recovering import Recovery
from runyard.stores.base import Reader, Transaction

_MOST_ASKED = 1  # a person who asks wants one retry, whatever max_retries says


@dataclass(frozen=True, slots=True)
class Analysis:
    """`diagnosis` is None where nothing went wrong; `plan` is what another attempt would do."""

    job: Job
    attempt: Attempt
    diagnosis: Diagnosis | None
    plan: Plan | None


class RecoveryDesk:
    def __init__(self, parts: Parts, commands: Commands) -> None:
        self._parts = parts
        self._commands = commands
        self._diagnoser = Diagnoser(parts)
        self._recovery = Recovery(parts)

    def analyze(self, ref: str) -> Analysis:
        """A fresh look at the newest attempt; NotEnded while it runs."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            attempt = reader.attempt(job.attempt_id()) if job.attempt_number else None
            if attempt is None:
                raise errors.NotFound(f"Job {job.ref} was never started.", job=job.ref)
            if attempt.status is not AttemptStatus.ENDED:
                raise errors.NotEnded(job=job.ref, status=job.status.value)
            diagnosis = self._looked_at(job, attempt)
            made = self._planned(reader, job, attempt, diagnosis)
        return Analysis(job, attempt, diagnosis, made)

    def attempt(
        self, ref: str, actor: Actor, *, dry_run: bool = False, delays: Sequence[float] = ()
    ) -> Analysis:
        """Start a failed job again by its plan; Conflict where no plan helps. At once, or, where
        nothing is known that helps, after the delay for its number of retries."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
        if dry_run and job.status is JobStatus.RETRYING:
            return self._under_way(job)
        actor.must_own(job)
        if job.status is not JobStatus.FAILED:
            raise _not_failed(job)
        found = self.analyze(ref)
        if dry_run or found.plan is None:
            return found
        if not found.plan.retries:
            raise errors.Conflict(
                f"No plan helps job {job.ref}: {found.plan.reason.code}. 'retry' tries it anyway.",
                job=job.ref,
                reason={
                    "code": found.plan.reason.code,
                    "params": dict(found.plan.reason.params),
                },
            )
        same = found.plan.strategy is Strategy.RETRY_SAME
        wait = backoff.delay(delays, job.retry_count) if same else 0.0
        plan = replace(found.plan, delay_s=wait, charged=False)

        def keep(tx: Transaction, now: Job) -> None:
            self._keep(tx, now, found, plan)

        cache_clearing.clear(self._parts, job, plan.clear)
        started = self._commands.retry(ref, actor, keep=keep, delay_s=wait)
        return replace(found, job=started, plan=plan)

    def _keep(self, tx: Transaction, job: Job, found: Analysis, plan: Plan) -> None:
        if job.attempt_number != found.attempt.number or job.status is not JobStatus.FAILED:
            raise _not_failed(job)
        known = found.diagnosis
        tx.update_attempt(
            found.attempt.attempt_id,
            frozenset({AttemptStatus.ENDED}),
            plan=plans.as_mapping(plan),
            **({} if known is None else {"diagnosis": diagnoses.as_mapping(known)}),
        )
        self._recovery.fence(tx, job, found.attempt, plan, self._parts.clock())

    def _looked_at(self, job: Job, attempt: Attempt) -> Diagnosis | None:
        own = attempt.node_id == self._parts.node_id
        if not own and attempt.diagnosis:
            return diagnoses.from_mapping(attempt.diagnosis)  # its log is on another machine
        return self._diagnoser.again(job, attempt)

    def _planned(
        self, reader: Reader, job: Job, attempt: Attempt, diagnosis: Diagnosis | None
    ) -> Plan | None:
        """As for a first failure: what was used up before does not count for who asks."""
        if diagnosis is None:
            return None
        attempts = reader.attempts(job.id)
        spec = replace(job.spec, max_retries=max(_MOST_ASKED, job.spec.max_retries))
        return plans.plan(
            diagnosis,
            spec,
            recovering.past(job, attempts, attempt.number, diagnosis)[-1:],
            recovering.overrides_of(spec),
            adjustments=starts.ran_with(attempts, attempt.number),
            circumstances=self._recovery.circumstances(reader, attempt, diagnosis),
            delays=self._parts.settings.retry_delays,
        )

    def _under_way(self, job: Job) -> Analysis:
        """It is tried again by itself: the plan that is already made."""
        with self._parts.store.read() as reader:
            attempt = reader.attempt(job.attempt_id())
        if attempt is None:
            raise errors.NotFound(f"Job {job.ref} was never started.", job=job.ref)
        known = diagnoses.from_mapping(attempt.diagnosis) if attempt.diagnosis else None
        made = plans.from_mapping(attempt.plan) if attempt.plan else None
        return Analysis(job, attempt, known, made)


def told(found: Analysis) -> dict[str, object]:
    """As an answer."""
    known, made = found.diagnosis, found.plan
    return {
        "job_id": found.job.ref,
        "attempt_id": found.attempt.attempt_id,
        "status": found.job.status.value,
        "failure_type": None if known is None else known.failure_type.value,
        "diagnosis": None if known is None else diagnoses.as_mapping(known),
        "plan": None if made is None else plans.as_mapping(made),
        "changes": [] if made is None else [asdict(change) for change in made.changes],
    }


def _not_failed(job: Job) -> errors.Conflict:
    if job.status in (JobStatus.COMPLETED, JobStatus.CANCELLED):
        return errors.AlreadyEnded(job=job.ref, status=job.status.value)
    return errors.NotEnded(job=job.ref, status=job.status.value)
