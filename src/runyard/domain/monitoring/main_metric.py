"""Which of a job's metrics tells most, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

# The first of these that there is.
_FIRST = ("loss", "val_loss", "accuracy", "val_accuracy", "reward", "perplexity")
_NEVER = ("learning_rate", "lr", "epoch", "step", "grad_norm", "total_steps", "total_epochs")
_MEASURED = ("system.", "gpu.", "node.")
_MORE_IS_BETTER = (
    "acc",
    "f1",
    "auc",
    "bleu",
    "rouge",
    "reward",
    "return",
    "score",
    "precision",
    "recall",
    "map",
    "iou",
    "dice",
    "psnr",
    "ssim",
    "per_sec",
    "throughput",
)
LOWEST, HIGHEST = "min", "max"


def choose(names: Collection[str]) -> str | None:
    """The main one of these; None when none is of the training itself."""
    for name in _FIRST:
        if name in names:
            return name
    own = [name for name in names if name not in _NEVER and not name.startswith(_MEASURED)]
    losses = [name for name in own if "loss" in name.lower()]
    return min(losses or own, default=None)


def direction(name: str) -> str:
    """min or max: which way is better."""
    words = name.lower()
    if "loss" in words or "error" in words or "perplexity" in words:
        return LOWEST
    return HIGHEST if any(word in words for word in _MORE_IS_BETTER) else LOWEST


def best(values: Iterable[float], way: str) -> float | None:
    """NaN and infinities are never the best."""
    finite = [value for value in values if math.isfinite(value)]
    return (min if way == LOWEST else max)(finite, default=None)
