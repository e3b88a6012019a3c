"""What a strategy is given, and the step it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import JobSpec
from runyard.domain.reasons import Reason
from runyard.domain.recovery.adjustments import Adjustments, Change, applied
from runyard.domain.recovery.policy import Strategy


class ResumeRule(StrEnum):
    NEWEST_GOOD = "newest_good"
    BEFORE_STEP = "before_step"  # the newest good one saved before `step`
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Resume:
    """Which checkpoint: by the rule, then `back` good ones further back, without `excluding`."""

    rule: ResumeRule = ResumeRule.NEWEST_GOOD
    step: int | None = None
    back: int = 0
    excluding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a plan can count on. `good_steps` are those of the good checkpoints (None: nobody
    looked); `asks_batch_scale`: whether the program is known to ask for it."""

    good_steps: tuple[int | None, ...] | None = None
    resumed: bool = False  # the failed attempt was given a checkpoint
    asks_batch_scale: bool = False
    spare_port: int | None = None
    gpus: tuple[str, ...] = ()  # that the failed attempt had
    wanted_bytes: int | None = None  # of disk: what a checkpoint took so far


@dataclass(frozen=True, slots=True)
class Case:
    """`nth`: which retry of this cause it is, from 0."""

    diagnosis: Diagnosis
    spec: JobSpec
    adjustments: Adjustments
    circumstances: Circumstances
    nth: int

    @property
    def now(self) -> JobSpec:
        """The job as the failed attempt ran it."""
        return applied(self.spec, self.adjustments)


@dataclass(frozen=True, slots=True)
class Step:
    strategy: Strategy
    reason: Reason
    adjustments: Adjustments
    changes: tuple[Change, ...] = ()
    resume: Resume = Resume()
    fence: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    wait_for: Mapping[str, Any] | None = None
    clear: tuple[str, ...] = ()
