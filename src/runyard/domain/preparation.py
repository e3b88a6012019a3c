"""Preparation: what must be here before a job may be placed, and what its end means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.domain import ending, reasons
from runyard.domain.job import JobSpec
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptStatus, Stage

# Its program is told to end by SIGTERM and needs no longer than this to leave a whole part.
GRACE_S = 1.0
# Trouble that may pass by itself: tried again as often as there are delays.
PASSING = frozenset({"network", "disk_full", "busy"})
# A lost supervisor is nobody's fault, but not for ever.
_MOST_LOST = 5

_ID = re.compile(r".+\.p[0-9]+")


@dataclass(frozen=True, slots=True)
class Preparation:
    """One try at preparing a job; its folder and supervisor are like those of an attempt."""

    preparation_id: str  # f"{job.ref}.p{number}"
    job_id: int
    number: int
    status: AttemptStatus
    stage: Stage
    node_id: str
    machine_id: str
    boot_id: str
    tag: int
    created_at: float
    stop_seq: int = 0
    exit_code: int | None = None
    signal: int | None = None
    cause: str | None = None
    outcome: Mapping[str, Any] | None = None  # as its program told it: code, and what it needs
    receipt: Mapping[str, Any] | None = None
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def succeeded(self) -> bool:
        return self.status is AttemptStatus.ENDED and self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Begin:
    """Start the next one when `due` has come."""

    due: float
    stage: Stage


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: Reason


def under_way(living: Preparation) -> Reason:
    """Why its job waits; how far it is is added when somebody reads it."""
    told = {"stage": living.stage.value, "preparation": living.preparation_id}
    return Reason(reasons.PREPARING, told)


def is_checked(spec: JobSpec, *, by_default: bool, gpus_fit: bool) -> bool:
    """Whether a job that is submitted now gets a preflight. Jobs without a GPU, downloads or
    torchrun start at once unless asked otherwise; one that can never have its GPUs here is not
    kept from saying so."""
    if spec.image is not None or spec.executor not in ("auto", "local"):
        return False  # nothing of this machine tells what is inside
    if spec.preflight is not None:
        return spec.preflight
    torchrun = spec.distributed is not None and spec.distributed.launcher == "torchrun"
    has_gpus = bool(spec.request.gpu_milli)
    return by_default and (
        (has_gpus and gpus_fit)
        or bool(spec.prefetch or spec.dataset_ids)
        or (torchrun and not has_gpus)
    )


def stages(spec: JobSpec) -> tuple[Stage, ...]:
    """What has to be done before the job may be placed, in this order."""
    wanted = (
        (Stage.PREFLIGHT, bool(spec.preflight)),
        (Stage.PULL, spec.pull),
        (Stage.PREFETCH, spec.downloads),
    )
    return tuple(stage for stage, needed in wanted if needed)


def needed(spec: JobSpec) -> bool:
    return bool(stages(spec))


def missing(spec: JobSpec, earlier: Sequence[Preparation], since: float) -> Stage | None:
    """The first stage that has not been passed since a person last asked for the job."""
    passed = {one.stage for one in earlier if one.succeeded and one.created_at >= since}
    return next((stage for stage in stages(spec) if stage not in passed), None)


def preparation_id(job_ref: str, number: int) -> str:
    return f"{job_ref}.p{number}"


def is_preparation_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def next_step(
    spec: JobSpec, earlier: Sequence[Preparation], since: float, delays: Sequence[float]
) -> Begin | GiveUp | None:
    """What an unprepared job needs now: a first or another try, or the end of trying. None while
    one is under way. Tries before `since`, when a person last asked for the job, do not count."""
    stage = missing(spec, earlier, since)
    if stage is None:
        return None
    tries = [one for one in earlier if one.created_at >= since and one.stage is stage]
    if not tries:
        return Begin(0.0, stage)
    last = tries[-1]
    if last.status is not AttemptStatus.ENDED:
        return None
    ended_at = last.ended_at or last.created_at
    if last.cause in ending.CANCELLED:  # the server was shut down meanwhile: go on from there
        return Begin(0.0, stage)
    if _was_lost(last):
        lost = sum(_was_lost(one) for one in tries)
        return Begin(ended_at, stage) if lost < _MOST_LOST else GiveUp(_failure(last))
    failures = sum(not _was_lost(one) and one.cause not in ending.CANCELLED for one in tries)
    code = (last.outcome or {}).get("code")
    if stage is not Stage.PREFLIGHT and code in PASSING and failures <= len(delays):
        return Begin(ended_at + delays[failures - 1], stage)
    return GiveUp(_failure(last))


def _was_lost(one: Preparation) -> bool:
    if one.stage is not Stage.PREFETCH and one.signal is not None:
        return True  # somebody killed it, which says nothing about the job
    return one.cause in ending.LOST or one.cause == ending.NEVER_STARTED


def _failure(last: Preparation) -> Reason:
    told = dict(last.outcome or {})
    if last.stage is Stage.PULL and told.get("message"):
        # As an engine's own words are told when a container cannot be started.
        words = {"step": last.stage.value, "path": told.get("uri"), "message": told["message"]}
        return Reason(reasons.START_FAILED, words)
    told.pop("report", None)  # shown with the job
    told.setdefault("code", "lost" if _was_lost(last) else "failed")
    if last.exit_code is not None:
        told.setdefault("exit_code", last.exit_code)
    if last.signal is not None:
        told.setdefault("signal", last.signal)
    return Reason(reasons.PREPARATION_FAILED, {"stage": last.stage.value, **told})
