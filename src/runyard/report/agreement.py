"""Stopping together: in a distributed training the ranks see a stop request at different steps,
and one that leaves alone lets the others wait for ever."""

from __future__ import annotations

import sys
from typing import Any

from runyard.report.stopping import should_stop

ASK_EVERY_S = 1.0
MOST_STEPS_BETWEEN = 100


class StopAgreement:
    """All ranks ask with the same steps, and get the same answer at the same step."""

    def __init__(self) -> None:
        self._next_step = 0
        self._asked_at: float | None = None
        self._asked_step = 0

    def ask(self, step: int) -> bool:
        distributed = _distributed()
        if distributed is None:
            return should_stop()
        if step < self._next_step:
            return False
        seconds = self._seconds_per_step(step)
        wanted, slowest = _largest(distributed, float(should_stop()), seconds)
        # Computed from what all ranks have just heard, so they ask again at the same step.
        between = int(ASK_EVERY_S / slowest) if slowest > 0 else 1
        self._next_step = step + max(1, min(between, MOST_STEPS_BETWEEN))
        return wanted > 0

    def _seconds_per_step(self, step: int) -> float:
        import time

        now, before = time.monotonic(), self._asked_at
        steps = max(1, step - self._asked_step)
        self._asked_at, self._asked_step = now, step
        return 0.0 if before is None else (now - before) / steps


def _distributed() -> Any:
    """torch.distributed where this process is one of several; the program imported it, or not."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return None
    if not distributed.is_initialized() or distributed.get_world_size() < 2:
        return None
    return distributed


def _largest(distributed: Any, *values: float) -> list[float]:
    torch = sys.modules["torch"]
    on_gpu = "nccl" in str(distributed.get_backend())
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else "cpu"
    tensor = torch.tensor(values, dtype=torch.float64, device=device)
    distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX)
    return [float(value) for value in tensor.tolist()]
