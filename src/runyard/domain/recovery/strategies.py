"""One function per strategy: from a failure to the step that may repair it, or the reason why
there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runyard.domain.failures.categories import Category
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.failures.signatures import gpu_memory
from runyard.domain.reasons import Reason
from runyard.domain.recovery import batch, knobs, plan_reasons
from runyard.domain.recovery.adjustments import Adjustments, Change
from runyard.domain.recovery.command_flags import Role
from runyard.domain.recovery.policy import Row, Strategy
from runyard.domain.recovery.step import Case, Resume, ResumeRule, Step

ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
_EXPANDABLE = "expandable_segments:True"
_RATE_FACTOR = 0.5
_OF_A_CACHE = ("/.cache/", "/huggingface/", "/hub/", "/torch/hub")


def step(row: Row, case: Case) -> Step | Reason:
    return _STRATEGIES[row.strategy](row, case)


def withdrawn(diagnosis: Diagnosis, before: Adjustments) -> Step | None:
    """A flag that we added and the program does not know is taken away again."""
    if diagnosis.category is not Category.CONFIG:
        return None
    named = str(diagnosis.facts.get("arguments", ""))
    for flag in before.inserted:
        if flag in named:
            change = Change("flag", flag, before.flags[flag], None)
            reason = Reason(plan_reasons.OWN_CHANGE_WITHDRAWN, {"name": flag})
            return Step(
                Strategy.RECONFIGURE_PARAMETERS, reason, before.without_flag(flag), (change,)
            )
    return None


def _smaller_batch(row: Row, case: Case) -> Step | Reason:
    facts = case.diagnosis.facts
    if facts.get("foreign_bytes"):
        # Nothing to wait for here: nobody gets a GPU that somebody else holds.
        return Step(
            Strategy.CLEAR_CACHE,
            _because(case, plan_reasons.GPU_HELD_BY_OTHERS, foreign_bytes=facts["foreign_bytes"]),
            case.adjustments,
        )
    if case.diagnosis.variant == gpu_memory.SEARCH_EXHAUSTED:
        return _because(case, plan_reasons.BATCH_SEARCH_EXHAUSTED)
    allocator = _allocator(case)
    if case.circumstances.asks_batch_scale:
        return _smaller_scale(row, case, allocator)
    made = batch.smaller(case.now, case.adjustments)
    if made is not None:
        reason = _because(
            case,
            plan_reasons.BATCH_SIZE_REDUCED,
            before=made.before,
            after=made.after,
            accumulation=made.accumulation,
            effective_kept=made.effective_kept,
        )
        return _changed(row.strategy, reason, made.adjustments, made.changes, allocator)
    knob = knobs.find(case.now, Role.BATCH)
    if knob is not None and knob.whole is not None:
        return _recomputing(case, allocator)
    if case.nth > 0:  # told once, which changed nothing
        return _because(case, plan_reasons.NOTHING_TO_CHANGE, what="batch_size")
    return _smaller_scale(row, case, allocator)


def _smaller_scale(row: Row, case: Case, allocator: tuple[Change, ...]) -> Step | Reason:
    made = batch.scaled(case.adjustments)
    if made is None:
        return _because(case, plan_reasons.BATCH_SIZE_IS_ONE)
    reason = _because(case, plan_reasons.BATCH_SCALE_REDUCED, scale=made[0].batch_scale)
    return _changed(row.strategy, reason, made[0], (made[1],), allocator)


def _recomputing(case: Case, allocator: tuple[Change, ...]) -> Step | Reason:
    """The batch size is 1: activations may be computed again instead of kept, if declared."""
    knob = knobs.find(case.now, Role.RECOMPUTE)
    if knob is None or knob.truth is not False:
        return _because(case, plan_reasons.BATCH_SIZE_IS_ONE)
    change = knob.turned("True" if isinstance(knob.value, str) else True)
    reason = _because(case, plan_reasons.RECOMPUTE_ACTIVATIONS, name=knob.name)
    made = case.adjustments.with_change(change)
    return _changed(Strategy.RECONFIGURE_PARAMETERS, reason, made, (change,), allocator)


def _allocator(case: Case) -> tuple[Change, ...]:
    """Where memory was there but in pieces, the allocator can be told to join them."""
    facts = case.diagnosis.facts
    pieces = facts.get("unallocated_bytes", 0) >= facts.get("tried_bytes", 1)
    set_already = ALLOCATOR in case.now.env_vars or "PYTORCH_ALLOC_CONF" in case.now.env_vars
    return (Change("env", ALLOCATOR, None, _EXPANDABLE),) if pieces and not set_already else ()


def _reconfigured(row: Row, case: Case) -> Step | Reason:
    if case.diagnosis.category is Category.PORT_IN_USE:
        return _other_port(row, case)
    made, changes = case.adjustments, []
    reason = None
    workers = knobs.find(case.now, Role.WORKERS)
    count = None if workers is None else workers.whole
    if workers is not None and count is not None and count > 0:
        changes.append(workers.turned(batch.like(workers.value, count // 2)))
        reason = _because(case, plan_reasons.WORKERS_REDUCED, before=count, after=count // 2)
    pinned = knobs.find(case.now, Role.PIN_MEMORY)
    if pinned is not None and pinned.truth is True:
        changes.append(pinned.turned("False" if isinstance(pinned.value, str) else False))
        reason = reason or _because(case, plan_reasons.PINNING_OFF, name=pinned.name)
    for change in changes:
        made = made.with_change(change)
    if reason is not None:
        return Step(row.strategy, reason, made, tuple(changes))
    if case.nth > 0:
        return _because(case, plan_reasons.NOTHING_TO_CHANGE, what="num_workers")
    # Memory of the machine is used by others too: once more, from where it was.
    return Step(Strategy.RETRY_SAME, _because(case, plan_reasons.RETRY_SAME), case.adjustments)


def _other_port(row: Row, case: Case) -> Step | Reason:
    knob, port = knobs.find(case.now, Role.PORT), case.circumstances.spare_port
    if knob is None or port is None:
        # What holds it may be what we left ourselves, and is gone soon.
        return Step(Strategy.RETRY_SAME, _because(case, plan_reasons.RETRY_SAME), case.adjustments)
    head, colon, old = str(knob.value).rpartition(":")
    after = f"{head}:{port}" if colon and old.isdigit() else batch.like(knob.value, port)
    change = knob.turned(after)
    reason = _because(case, plan_reasons.PORT_CHANGED, before=knob.value, after=after)
    return Step(row.strategy, reason, case.adjustments.with_change(change), (change,))


def _from_checkpoint(row: Row, case: Case) -> Step | Reason:
    if case.diagnosis.category is Category.NAN:
        return _before_the_bad_step(row, case)
    path = case.diagnosis.facts.get("path")
    if case.diagnosis.category is Category.CKPT_MISSING:
        return _without_checkpoint(row, case)
    if path is not None and any(part in path for part in _OF_A_CACHE):
        return _cleared(row, case)
    if not case.circumstances.resumed and case.circumstances.good_steps == ():
        return _because(case, plan_reasons.NOTHING_TO_CHANGE, what="checkpoint")
    excluded = () if path is None else (path,)
    # The one it was given is the broken one, whether or not the message names it.
    back = 0 if excluded or not case.circumstances.resumed else 1
    return Step(
        row.strategy,
        _because(case, plan_reasons.CHECKPOINT_REPLACED, path=path),
        case.adjustments,
        resume=Resume(back=back, excluding=excluded),
    )


def _before_the_bad_step(row: Row, case: Case) -> Step | Reason:
    bad = case.diagnosis.facts.get("bad_step")
    steps = case.circumstances.good_steps
    resume = Resume(ResumeRule.BEFORE_STEP, bad, case.nth)
    if bad is None:
        resume = Resume(back=case.nth + 1)
    rate = knobs.find(case.now, Role.LEARNING_RATE)
    number = None if rate is None else rate.number
    if rate is not None and number is not None and number > 0:
        after = number * _RATE_FACTOR
        change = rate.turned(batch.like(rate.value, after))
        reason = _because(
            case,
            plan_reasons.LEARNING_RATE_LOWERED,
            before=rate.value,
            after=change.after,
            bad_step=bad,
        )
        made = case.adjustments.with_change(change)
        return Step(row.strategy, reason, made, (change,), resume)
    older = steps is None or any(bad is None or one is None or one < bad for one in steps)
    if not older or case.nth > 0:
        return _because(case, plan_reasons.NOTHING_TO_CHANGE, what="learning_rate")
    reason = _because(case, plan_reasons.ROLLED_BACK, bad_step=bad)
    return Step(row.strategy, reason, case.adjustments, resume=resume)


def _without_checkpoint(row: Row, case: Case) -> Step | Reason:
    reason = _because(case, plan_reasons.FRESH_START, path=case.diagnosis.facts.get("path"))
    resume = Resume() if case.circumstances.good_steps else Resume(ResumeRule.NONE)
    if case.circumstances.resumed:
        return Step(row.strategy, reason, case.adjustments, resume=resume)
    knob = knobs.find(case.now, Role.RESUME)
    if knob is None or knob.truth is not True:
        return _because(case, plan_reasons.NOTHING_TO_CHANGE, what="resume_from_checkpoint")
    change = knob.turned("False" if isinstance(knob.value, str) else False)
    made = case.adjustments.with_change(change)
    return Step(row.strategy, reason, made, (change,), resume)


def _cleared(_row: Row, case: Case) -> Step | Reason:
    path = case.diagnosis.facts.get("path")
    return Step(
        Strategy.CLEAR_CACHE,
        _because(case, plan_reasons.CACHE_CLEARED, path=path),
        case.adjustments,
        clear=() if path is None else (path,),
    )


def _elsewhere(row: Row, case: Case) -> Step | Reason:
    suspects = tuple(case.diagnosis.facts.get("gpu_uuids", ())) or case.circumstances.gpus
    certain = tuple(case.diagnosis.facts.get("gpu_uuids", ()))
    only = case.circumstances.gpus if len(case.circumstances.gpus) == 1 else ()
    return Step(
        row.strategy,
        _because(case, plan_reasons.GPU_FENCED, gpus=list(certain or only)),
        case.adjustments,
        fence=certain or only,
        avoid=suspects,
    )


def _for_space(row: Row, case: Case) -> Step | Reason:
    facts = case.diagnosis.facts
    wanted = case.circumstances.wanted_bytes
    room = {"path": facts.get("path"), "bytes": wanted}
    return Step(
        row.strategy,
        _because(
            case,
            plan_reasons.WAIT_FOR_SPACE,
            path=facts.get("path"),
            free_bytes=facts.get("free_bytes"),
            wanted_bytes=wanted,
        ),
        case.adjustments,
        wait_for={"kind": "disk", **room},
    )


def _same(row: Row, case: Case) -> Step | Reason:
    if case.diagnosis.variant == "read_only":
        return _because(case, plan_reasons.READ_ONLY)
    suspects = tuple(case.diagnosis.facts.get("gpu_uuids", ()))
    if row.other_gpus and (suspects or case.circumstances.gpus):
        reason = _because(case, plan_reasons.OTHER_GPU)
        avoid = suspects or case.circumstances.gpus
        return Step(row.strategy, reason, case.adjustments, avoid=avoid)
    return Step(row.strategy, _because(case, plan_reasons.RETRY_SAME), case.adjustments)


def _changed(
    strategy: Strategy,
    reason: Reason,
    made: Adjustments,
    changes: tuple[Change, ...],
    allocator: tuple[Change, ...],
) -> Step:
    for change in allocator:
        made = made.with_change(change)
    return Step(strategy, reason, made, (*changes, *allocator))


def _because(case: Case, code: str, **params: Any) -> Reason:
    return Reason(code, {"category": case.diagnosis.category.value, **params})


def _refused(_row: Row, case: Case) -> Step | Reason:
    return _because(case, plan_reasons.NOT_RETRYABLE)


_STRATEGIES: dict[Strategy, Callable[[Row, Case], Step | Reason]] = {
    Strategy.REDUCE_BATCH_SIZE: _smaller_batch,
    Strategy.RECONFIGURE_PARAMETERS: _reconfigured,
    Strategy.RESTART_FROM_CHECKPOINT: _from_checkpoint,
    Strategy.CLEAR_CACHE: _cleared,
    Strategy.OTHER_GPUS_FENCED: _elsewhere,
    Strategy.WAIT_FOR_SPACE: _for_space,
    Strategy.RETRY_SAME: _same,
    Strategy.GIVE_UP: _refused,
}
