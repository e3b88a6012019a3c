"""For Keras: `model.fit(..., callbacks=[RunyardCallback()])`.

It tells progress and metrics, and at a stop request saves the model and leaves.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from runyard.report.atomic_save import save_checkpoint
from runyard.report.pace import Pace
from runyard.report.stopping import should_stop
from runyard.report.telling import report

if TYPE_CHECKING:

    class Callback:
        model: Any
        params: Any

else:
    try:
        from keras.callbacks import Callback
    except ImportError:  # the module can be read without it
        Callback = object


class RunyardCallback(Callback):
    """`save_dir`: where the model is saved at a stop; the job's checkpoint directory by default,
    and nowhere outside a job."""

    def __init__(self, progress_every_s: float = 1.0, save_dir: str | None = None) -> None:
        super().__init__()
        self._pace = Pace(progress_every_s)
        self._save_dir = save_dir
        self._epoch = 0
        self._steps_done = 0  # in the epochs before this one
        self._step = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        self._tell({})

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        per_epoch = self._per_epoch()
        # A resumed fit begins at a later epoch, with its steps behind it.
        self._steps_done = epoch * per_epoch if per_epoch else self._step
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._step = self._steps_done + batch + 1
        if self._pace.due():
            self._tell(logs or {}, epoch=self._epoch)
        if not self.model.stop_training and should_stop():
            self._stop()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._tell(logs or {}, epoch=epoch + 1)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        self._tell({}, phase="evaluating")

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        self._tell({}, phase="finishing")

    def _tell(
        self, logs: dict[str, Any], epoch: int | None = None, phase: str | None = None
    ) -> None:
        per_epoch, epochs = self._per_epoch(), (self.params or {}).get("epochs")
        own = {"step", "total", "epoch", "total_epochs", "phase"}
        report(
            step=self._step,
            total=per_epoch * epochs if per_epoch and epochs else None,
            epoch=epoch,
            total_epochs=epochs,
            phase=phase,
            **{name: value for name, value in logs.items() if name not in own},
        )

    def _per_epoch(self) -> int | None:
        steps = (self.params or {}).get("steps")
        return steps if isinstance(steps, int) and steps > 0 else None

    def _stop(self) -> None:
        folder = self._save_dir or os.environ.get("RUNYARD_CHECKPOINT_DIR")
        if folder:
            path = os.path.join(folder, f"stopped-step-{self._step}.keras")
            save_checkpoint(self.model.save, path, self._step)
        self.model.stop_training = True
