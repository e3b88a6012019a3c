"""What the next attempt does differently, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import JobSpec
from runyard.domain.reasons import Reason
from runyard.domain.recovery import adjustments as adjusting
from runyard.domain.recovery import backoff, ledger, plan_reasons, policy, strategies
from runyard.domain.recovery.adjustments import Adjustments, Change
from runyard.domain.recovery.ledger import PastAttempt
from runyard.domain.recovery.overrides import Overrides
from runyard.domain.recovery.policy import Row, Strategy
from runyard.domain.recovery.step import Case, Circumstances, Resume, ResumeRule, Step


@dataclass(frozen=True, slots=True)
class Plan:
    """`changes` are against the attempt that failed; `adjustments` are all against the job.
    `fence` are GPUs nobody may use any more, `avoid` those this job should not get again;
    `wait_for` is what must be so before it starts; `clear` are cache entries to drop."""

    strategy: Strategy
    reason: Reason
    changes: tuple[Change, ...] = ()
    adjustments: Adjustments = field(default_factory=Adjustments)
    delay_s: float = 0.0
    charged: bool = False
    resume: Resume = field(default_factory=Resume)
    fence: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    wait_for: Mapping[str, Any] | None = None
    clear: tuple[str, ...] = ()

    @property
    def retries(self) -> bool:
        return self.strategy is not Strategy.GIVE_UP


def plan(
    diagnosis: Diagnosis,
    spec: JobSpec,
    history: Sequence[PastAttempt],
    overrides: Overrides | None = None,
    *,
    adjustments: Adjustments | None = None,
    circumstances: Circumstances | None = None,
    delays: Sequence[float] = backoff.DELAYS,
    jitter: float = 0.0,
) -> Plan:
    """The plan after the last of `history` failed with `diagnosis`. `adjustments` are those it ran
    with; `delays` count where the category has none of its own; `jitter` is random in [0, 1)."""
    before = adjustments or Adjustments()
    row = policy.ROWS[diagnosis.category]
    override = (overrides or Overrides()).of(diagnosis)
    if override is not None:
        row = override.on(row)
        if row.strategy is Strategy.GIVE_UP and override.strategy is not None:
            told = {"category": diagnosis.category.value}
            return _give_up(Reason(plan_reasons.BY_OVERRIDE, told), before)
    withdrawn = strategies.withdrawn(diagnosis, before)
    if withdrawn is not None and spec.max_retries > 0:
        return _made(withdrawn, 0.0, charged=False)
    allowed = ledger.judge(row, history, spec.max_retries)
    if isinstance(allowed, Reason):
        return _give_up(allowed, before)
    case = Case(diagnosis, spec, before, circumstances or Circumstances(), allowed.nth)
    step = strategies.step(row, case)
    if isinstance(step, Reason):
        return _give_up(step, before)
    if override is not None:
        step = override.added(step, adjusting.applied(spec, step.adjustments))
    wait = _wait(row, diagnosis, spec, delays, allowed.nth, jitter)
    return _made(step, wait, charged=allowed.charged)


def _wait(
    row: Row,
    diagnosis: Diagnosis,
    spec: JobSpec,
    delays: Sequence[float],
    nth: int,
    jitter: float,
) -> float:
    own = backoff.delays_of(spec.retry_delays, delays)
    wait = backoff.delay(own if row.delays is None else row.delays, nth, jitter)
    asked = diagnosis.facts.get("retry_after_s")
    return max(wait, float(asked)) if isinstance(asked, int) else wait


def _made(step: Step, delay_s: float, *, charged: bool) -> Plan:
    return Plan(
        step.strategy,
        step.reason,
        step.changes,
        step.adjustments,
        delay_s,
        charged,
        step.resume,
        step.fence,
        step.avoid,
        step.wait_for,
        step.clear,
    )


def _give_up(reason: Reason, before: Adjustments) -> Plan:
    return Plan(Strategy.GIVE_UP, reason, adjustments=before)


def as_mapping(made: Plan) -> dict[str, Any]:
    """As it is kept with the attempt that it leads to, and sent to people."""
    return {
        "strategy": made.strategy.value,
        "reason": {"code": made.reason.code, "params": dict(made.reason.params)},
        "changes": [asdict(change) for change in made.changes],
        "adjustments": adjusting.as_mapping(made.adjustments),
        "delay_s": made.delay_s,
        "charged": made.charged,
        "resume": {**asdict(made.resume), "rule": made.resume.rule.value},
        "fence": list(made.fence),
        "avoid": list(made.avoid),
        "wait_for": None if made.wait_for is None else dict(made.wait_for),
        "clear": list(made.clear),
    }


def from_mapping(kept: Mapping[str, Any]) -> Plan:
    resume = dict(kept["resume"])
    return Plan(
        Strategy(kept["strategy"]),
        Reason(kept["reason"]["code"], kept["reason"]["params"]),
        tuple(Change(**change) for change in kept["changes"]),
        adjusting.from_mapping(kept["adjustments"]),
        kept["delay_s"],
        kept["charged"],
        replace(
            Resume(**{**resume, "excluding": tuple(resume["excluding"])}),
            rule=ResumeRule(resume["rule"]),
        ),
        tuple(kept["fence"]),
        tuple(kept["avoid"]),
        kept["wait_for"],
        tuple(kept["clear"]),
    )
