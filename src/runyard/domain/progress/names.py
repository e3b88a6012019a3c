"""One name for each metric, however it is spelled."""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST_NAME = 128
GOOD_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")

_NOT_IN_NAMES = re.compile(r"[^a-z0-9_./]+")
_SAME = {
    "lr": "learning_rate",
    "learning_rates": "learning_rate",
    "learningrate": "learning_rate",
    "train_lr": "learning_rate",
    "train_learning_rate": "learning_rate",
    "lm_loss": "loss",
    "train_loss": "loss",
    "training_loss": "loss",
    "trainloss": "loss",
    "avg_loss": "loss",
    "average_loss": "loss",
    "running_loss": "loss",
    "mean_loss": "loss",
    "batch_loss": "loss",
    "epoch_loss": "loss",
    "acc": "accuracy",
    "acc1": "accuracy",
    "acc_1": "accuracy",
    "top1": "accuracy",
    "train_acc": "accuracy",
    "train_accuracy": "accuracy",
    "categorical_accuracy": "accuracy",
    "sparse_categorical_accuracy": "accuracy",
    "binary_accuracy": "accuracy",
    "val_acc": "val_accuracy",
    "gnorm": "grad_norm",
    "norm": "grad_norm",
    "gradnorm": "grad_norm",
    "gradient_norm": "grad_norm",
    "train_grad_norm": "grad_norm",
    "tps": "tokens_per_sec",
    "tok/s": "tokens_per_sec",
    "tok/sec": "tokens_per_sec",
    "tokens/s": "tokens_per_sec",
    "tokens/sec": "tokens_per_sec",
    "tokens_per_second": "tokens_per_sec",
    "train_tokens_per_second": "tokens_per_sec",
    "tgs": "tokens_per_sec",
    "samples/s": "samples_per_sec",
    "samples/sec": "samples_per_sec",
    "img/s": "samples_per_sec",
    "images/sec": "samples_per_sec",
    "samples_per_second": "samples_per_sec",
    "train_samples_per_second": "samples_per_sec",
    "runningavgsamplespersec": "samples_per_sec",
    "currsamplespersec": "current_samples_per_sec",
    "it/s": "steps_per_sec",
    "steps_per_second": "steps_per_sec",
    "train_steps_per_second": "steps_per_sec",
    "ppl": "perplexity",
    "tflops/gpu": "tflops_per_gpu",
}
_VALIDATION = re.compile(r"^(?:validation|valid|eval|val)(?:uation)?[_/ .]+")


def canonical(name: str) -> str:
    """The name that charts and rules use: lower case, validation as `val_`, known spellings."""
    plain = _NOT_IN_NAMES.sub("_", name.strip().lower()).strip("_./")[:LONGEST_NAME]
    if plain.startswith("train/"):
        plain = plain[len("train/") :]
    plain = _VALIDATION.sub("val_", plain, count=1)
    return _SAME.get(plain, plain)


def canonical_values(values: Mapping[str, float]) -> dict[str, float]:
    """All names at once; where two would become one, the one that has it by itself keeps it."""
    renamed = {name: canonical(name) for name in values}
    own = {name for name, new in renamed.items() if name == new}
    named: dict[str, float] = {}
    for name, value in values.items():
        new = renamed[name]
        if name != new and (new in own or new in named):
            new = _NOT_IN_NAMES.sub("_", name.lower()).strip("_./")
        if new:
            named[new] = value
    return named
