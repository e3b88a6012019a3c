"""DeepSpeed: `[Rank 0] step=100, skipped=0, lr=[5e-05], mom=[...]` and
`epoch=0/micro_step=100/global_step=100, RunningAvgSamplesPerSec=12.3, ...`."""

from __future__ import annotations

import re

from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import NUMBER

FAMILY = "deepspeed"

_STEP = re.compile(rf"\bstep=(\d{{1,12}}), skipped=\d{{1,12}}, lr=\[\s{{0,2}}({NUMBER})")
_SPEED = re.compile(
    r"\bepoch=\d{1,9}/micro_step=\d{1,12}/global_step=(\d{1,12}), "
    rf"RunningAvgSamplesPerSec=({NUMBER}), CurrSamplesPerSec=({NUMBER})"
)
_PIPELINE = re.compile(
    rf"\bsteps: (\d{{1,12}}) loss: ({NUMBER}) iter time \(s\): ({NUMBER}) samples/sec: ({NUMBER})"
)


def read(line: str) -> Sighting | None:
    if "step" not in line:
        return None
    if match := _STEP.search(line):
        return _sighting(int(match[1]), {"learning_rate": float(match[2])})
    if match := _SPEED.search(line):
        return _sighting(int(match[1]), {"samples_per_sec": float(match[2])})
    if match := _PIPELINE.search(line):
        values = {"loss": float(match[2]), "samples_per_sec": float(match[4])}
        seconds = float(match[3])
        return _sighting(int(match[1]), values, 1 / seconds if seconds > 0 else None)
    return None


def _sighting(step: int, values: dict[str, float], rate: float | None = None) -> Sighting:
    return Sighting(FAMILY, "train", step=step, values=values, rate=rate)
