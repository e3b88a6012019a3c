"""For Lightning: `Trainer(..., callbacks=[RunyardCallback()])`.

It tells progress, logged metrics and checkpoints, and at a stop request saves one and leaves.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from runyard.report.agreement import StopAgreement
from runyard.report.pace import Pace
from runyard.report.telling import checkpoint, report

if TYPE_CHECKING:

    class Callback: ...

else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        try:
            from pytorch_lightning.callbacks import Callback
        except ImportError:  # the module can be read without it
            Callback = object


class RunyardCallback(Callback):
    """`progress_every_s`: how often the step is told between two logs. `save_dir`: where the
    checkpoint of a stop goes; the job's checkpoint directory by default."""

    def __init__(self, progress_every_s: float = 1.0, save_dir: str | None = None) -> None:
        self._pace = Pace(progress_every_s)
        self._save_dir = save_dir
        self._agreement = StopAgreement()
        self._total: float | None = None
        self._told: dict[int, tuple[str, int]] = {}

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        self._total = _total_steps(trainer)
        self._tell(trainer, with_metrics=False)

    def on_train_batch_end(
        self,
        trainer: Any,
        pl_module: Any,  # noqa: ARG002
        outputs: Any,  # noqa: ARG002
        batch: Any,  # noqa: ARG002
        batch_idx: int,  # noqa: ARG002
    ) -> None:
        step = trainer.global_step
        if step and step % max(1, int(trainer.log_every_n_steps or 1)) == 0:
            self._tell(trainer, with_metrics=True)
        elif self._pace.due():
            self._tell(trainer, with_metrics=False)
        self._tell_checkpoints(trainer)
        if not trainer.should_stop and self._agreement.ask(step):
            self._stop(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        if not trainer.sanity_checking:  # before the first step, where nobody waits for one
            self._tell(trainer, with_metrics=False, phase="evaluating")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        if not trainer.sanity_checking:
            self._tell(trainer, with_metrics=True)
            self._tell_checkpoints(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        self._tell(trainer, with_metrics=True)
        self._tell_checkpoints(trainer)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:  # noqa: ARG002
        self._tell(trainer, with_metrics=False, phase="saving")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        self._tell(trainer, with_metrics=False, phase="finishing")

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        self._tell_checkpoints(trainer)

    def _tell(self, trainer: Any, *, with_metrics: bool, phase: str | None = None) -> None:
        if not trainer.is_global_zero:
            return
        own = {"step", "total", "epoch", "total_epochs", "phase"}
        logged = trainer.callback_metrics if with_metrics else {}
        report(
            step=trainer.global_step,
            total=self._total,
            epoch=trainer.current_epoch,
            total_epochs=_positive(trainer.max_epochs),
            phase=phase,
            **{name: value for name, value in logged.items() if name not in own},
        )

    def _tell_checkpoints(self, trainer: Any) -> None:
        if not trainer.is_global_zero:
            return
        for saver in trainer.checkpoint_callbacks:
            path = getattr(saver, "_last_checkpoint_saved", "") or saver.best_model_path
            step = getattr(saver, "_last_global_step_saved", trainer.global_step)
            if path and self._told.get(id(saver)) != (path, step) and os.path.exists(path):
                self._told[id(saver)] = (path, step)
                checkpoint(path, step)

    def _stop(self, trainer: Any) -> None:
        folder = self._save_dir or os.environ.get("RUNYARD_CHECKPOINT_DIR")
        folder = folder or os.path.join(trainer.default_root_dir, "checkpoints")
        path = os.path.join(folder, f"stopped-step={trainer.global_step}.ckpt")
        trainer.save_checkpoint(path)  # every rank takes part
        if trainer.is_global_zero and os.path.exists(path):
            checkpoint(path, trainer.global_step)
        trainer.should_stop = True
        trainer.limit_val_batches = 0  # the grace is for saving, not for a validation
        # A stop request is stronger than the least length that the program asked for.
        trainer.fit_loop.min_epochs = None
        trainer.fit_loop.epoch_loop.min_steps = None


def _total_steps(trainer: Any) -> float | None:
    try:
        return _positive(trainer.estimated_stepping_batches)
    except Exception:  # a data loader without a length, or one that fails: not our trouble
        return _positive(trainer.max_steps)


def _positive(value: Any) -> float | None:
    return value if value is not None and value > 0 and math.isfinite(value) else None
