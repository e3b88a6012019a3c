"""What an attempt is started with besides what its job says: the changes of all plans so far, and
the checkpoint it resumes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runyard.domain.job import Attempt, Job, JobSpec
from runyard.domain.reasons import Reason
from runyard.domain.recovery import adjustments as adjusting
from runyard.domain.recovery import plan as plans
from runyard.domain.recovery.adjustments import Adjustments
from runyard.domain.recovery.plan import Plan
from runyard.domain.recovery.policy import Strategy
from runyard.domain.recovery.step import Resume, ResumeRule
from runyard.domain.states import AttemptStatus
from runyard.stores.base import Transaction

_NONE = Adjustments()
ASKED_FRESH = "asked_fresh"  # of a plan: no changes and no checkpoint, because a person said so


@dataclass(frozen=True, slots=True)
class Start:
    adjustments: Adjustments = _NONE
    resume_from: str | None = None

    @property
    def batch_scale(self) -> str:
        return adjusting.batch_scale_text(self.adjustments)

    def spec(self, spec: JobSpec) -> JobSpec:
        return spec if self.adjustments == _NONE else adjusting.applied(spec, self.adjustments)


AS_SUBMITTED = Start()


def ran_with(attempts: Sequence[Attempt], number: int) -> Adjustments:
    """What the attempt of this number was, or will be, started with."""
    planned = [one.plan for one in attempts if one.plan and one.number < number]
    return adjusting.from_mapping(planned[-1]["adjustments"]) if planned else _NONE


def of_next(tx: Transaction, job: Job) -> Start:
    """Of the attempt that is placed now; its checkpoint is chosen when it is handed over."""
    if job.attempt_number == 0:
        return AS_SUBMITTED
    return Start(ran_with(tx.attempts(job.id), job.attempt_number + 1))


def forget_plans(tx: Transaction, job: Job) -> None:
    """A person wants it as it was submitted, from the start: what the newest attempt leads to."""
    made = Plan(Strategy.RETRY_SAME, Reason(ASKED_FRESH), resume=Resume(ResumeRule.NONE))
    ended = frozenset({AttemptStatus.ENDED})
    tx.update_attempt(job.attempt_id(), ended, plan=plans.as_mapping(made))
