"""What earlier attempts have used up: a budget per cause, and an end to doing the same again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runyard.domain.failures.categories import Category
from runyard.domain.failures.diagnosis import NO_LINE
from runyard.domain.reasons import Reason
from runyard.domain.recovery import plan_reasons
from runyard.domain.recovery.policy import Charge, Row, Strategy


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """A failed attempt. `settings` is equal for attempts that ran with the same changes; `charged`
    tells of the retry that followed it."""

    number: int
    category: Category
    fingerprint: str
    step: int | None = None  # the furthest it came
    settings: str = ""
    charged: bool = False
    never_ran: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    nth: int  # which retry of this cause it would be, from 0: chooses the delay
    charged: bool


def judge(row: Row, history: Sequence[PastAttempt], max_retries: int) -> Allowed | Reason:
    """Whether another attempt may follow `history`, the last of which has just failed. A Reason
    says why not."""
    last = history[-1]
    if row.strategy is Strategy.GIVE_UP:
        return Reason(plan_reasons.NOT_RETRYABLE, {"category": last.category.value})
    if max_retries <= 0 and not last.never_ran:
        return Reason(plan_reasons.NO_RETRIES_ASKED, {"category": last.category.value})
    times = same_root(history)
    if times >= row.same_root:
        told = {"times": times, "fingerprint": last.fingerprint, "step": last.step}
        return Reason(plan_reasons.SAME_ROOT_AGAIN, {"category": last.category.value, **told})
    counted = history[progressed_at(history) :] if row.renews else history
    spent = sum(one.category is last.category for one in counted) - 1
    if row.charge is not Charge.YES and (row.budget is None or spent < row.budget):
        return Allowed(spent, charged=False)
    if row.charge is Charge.NO:
        told = {"category": last.category.value, "budget": row.budget}
        return Reason(plan_reasons.BUDGET_USED_UP, told)
    charged = sum(one.charged for one in history[:-1])
    if charged >= max_retries:
        told = {"category": last.category.value, "max_retries": max_retries}
        return Reason(plan_reasons.RETRIES_USED_UP, told)
    return Allowed(charged, charged=True)


def same_root(history: Sequence[PastAttempt]) -> int:
    """How often the last failure came with the same settings since training last advanced; 0
    where no line tells what it was, so that nobody knows whether it is the same."""
    last = history[-1]
    if last.fingerprint.startswith(NO_LINE):
        return 0
    return sum(
        (one.fingerprint, one.settings) == (last.fingerprint, last.settings)
        for one in history[progressed_at(history) :]
    )


def progressed_at(history: Sequence[PastAttempt]) -> int:
    """The last attempt that came further than all before it."""
    furthest, found = -1, 0
    for index, one in enumerate(history):
        if one.step is not None and one.step > furthest:
            furthest, found = one.step, index
    return found
