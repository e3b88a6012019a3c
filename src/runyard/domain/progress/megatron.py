"""Megatron-LM: `iteration 100/ 5000 | consumed samples: 25600 | ... | lm loss: 2.3E+00 | ...`."""

from __future__ import annotations

import re

from runyard.domain.progress.names import canonical_values
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import NUMBER, number

FAMILY = "megatron"

_ITERATION = re.compile(r"\biteration\s{1,12}(\d{1,12})/\s{0,12}(\d{1,12})\s{0,4}\|(.{0,6000})$")
_VALIDATION = re.compile(r"\bvalidation loss at iteration (\d{1,12})\b[^|]{0,80}\|(.{0,4000})$")
_PART = re.compile(
    rf"^\s{{0,8}}([A-Za-z][\w /()-]{{0,60}}?)\s{{0,4}}:\s{{0,12}}({NUMBER})\s{{0,8}}$"
)
_NAMES = {
    "learning rate": "learning_rate",
    "lm loss": "loss",
    "loss": "loss",
    "grad norm": "grad_norm",
    "params norm": "params_norm",
    "loss scale": "loss_scale",
    "global batch size": "global_batch_size",
    "consumed samples": "consumed_samples",
    "consumed tokens": "consumed_tokens",
    "throughput per GPU (TFLOP/s/GPU)": "tflops_per_gpu",
    "samples per second": "samples_per_sec",
    "tokens per second": "tokens_per_sec",
    "number of skipped iterations": "skipped_iterations",
    "number of nan iterations": "nan_iterations",
}


def read(line: str) -> Sighting | None:
    if "iteration" not in line or "|" not in line:
        return None
    if match := _VALIDATION.search(line):
        parts = _parts(match[2])
        values = {
            f"val_{name.removesuffix(' value').removeprefix('lm ')}": value
            for name, value in parts.items()
        }
        return Sighting(FAMILY, "evaluation", step=int(match[1]), values=canonical_values(values))
    match = _ITERATION.search(line)
    if match is None:
        return None
    parts = _parts(match[3])
    spent = parts.get("elapsed time per iteration (ms)")
    return Sighting(
        FAMILY,
        "train",
        step=int(match[1]),
        total_steps=int(match[2]) or None,
        values={_NAMES[name]: value for name, value in parts.items() if name in _NAMES},
        rate=1000 / spent if spent and spent > 0 else None,
    )


def _parts(text: str) -> dict[str, float]:
    found = {}
    for part in text.split("|"):
        match = _PART.match(part)
        value = number(match[2]) if match else None
        if match and value is not None:
            found[match[1]] = value
    return found
