"""For the Trainer of transformers: `Trainer(..., callbacks=[RunyardCallback()])`.

It tells progress, logs, pauses and checkpoints, and at a stop request saves one and leaves.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from runyard.report.agreement import StopAgreement
from runyard.report.pace import Pace
from runyard.report.telling import checkpoint, report

if TYPE_CHECKING:

    class TrainerCallback: ...

else:
    try:
        from transformers import TrainerCallback
    except ImportError:  # the module can be read without it; a Trainer cannot be made without it
        TrainerCallback = object


class RunyardCallback(TrainerCallback):
    """`progress_every_s`: how often the step is told between two logs."""

    def __init__(self, progress_every_s: float = 1.0) -> None:
        self._pace = Pace(progress_every_s)
        self._agreement = StopAgreement()
        self._stopping = False

    def on_train_begin(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        _tell(state, {})
        return control

    def on_log(
        self, _args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> Any:
        _tell(state, logs or {})
        return control

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self._agreement.ask(state.global_step):
            self._stopping = True
            control.should_save = True
            control.should_training_stop = True
        elif self._pace.due():
            _tell(state, {})
        _tell_pause(state, control)
        return control

    def on_epoch_end(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self._stopping:  # the grace is for saving, not for an evaluation
            control.should_evaluate = False
        _tell_pause(state, control)
        return control

    def on_prediction_step(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self._pace.due():
            _tell(state, {}, "evaluating")
        return control

    def on_evaluate(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        if control.should_save:
            _tell(state, {}, "saving")
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        if state.is_world_process_zero and os.path.isdir(path):
            checkpoint(path, state.global_step, epoch=state.epoch)
        return control

    def on_train_end(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        _tell(state, {}, "finishing")
        return control


def _tell_pause(state: Any, control: Any) -> None:
    """The Trainer evaluates first, then saves."""
    if control.should_evaluate:
        _tell(state, {}, "evaluating")
    elif control.should_save:
        _tell(state, {}, "saving")


def _tell(state: Any, logs: dict[str, Any], phase: str | None = None) -> None:
    if not state.is_world_process_zero:
        return
    own = {"step", "total", "epoch", "total_epochs", "total_flos", "phase"}
    metrics = {name: value for name, value in logs.items() if name not in own}
    total = state.max_steps if state.max_steps and state.max_steps > 0 else None
    report(
        step=state.global_step,
        total=total,
        epoch=state.epoch,
        total_epochs=state.num_train_epochs or None,
        phase=phase,
        **metrics,
    )
