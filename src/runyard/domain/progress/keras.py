"""Keras: `Epoch 3/10`, then `250/1875 [===>....] - ETA: 3s - loss: 0.4` or, since Keras 3,
`250/1875 ━━━━ 3s 2ms/step - loss: 0.4`."""

from __future__ import annotations

import re

from runyard.domain.progress.names import canonical_values
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import NUMBER

FAMILY = "keras"

_HEADER = re.compile(r"^Epoch (\d{1,9})/(\d{1,9})$")
_BAR = re.compile(
    r"^(\d{1,12})/(\d{1,12}|Unknown)\s{1,4}(?:\[[=>.]{1,200}\]|[━╸╺]{1,200}|(?=- \d))(.{0,4000})$"
)
_STEP_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|us|μs)/step")
_VALUE = re.compile(rf" - ([A-Za-z_][\w./@ -]{{0,63}}?): ({NUMBER})(?![\w.])")
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "μs": 1e-6}


def read(line: str) -> Sighting | None:
    header = _HEADER.match(line)
    if header is not None:
        return Sighting(
            FAMILY,
            "header",
            epoch=float(header[1]),
            total_epochs=float(header[2]),
        )
    if "/" not in line[:26] or not line[:1].isdigit():
        return None
    bar = _BAR.match(line)
    if bar is None:
        return None
    values = {name: float(value.replace(",", "")) for name, value in _VALUE.findall(bar[3])}
    if not values:
        return None
    step_time = _STEP_TIME.search(bar[3])
    seconds = float(step_time[1]) * _UNITS[step_time[2]] if step_time else 0.0
    return Sighting(
        FAMILY,
        "train",
        batch=float(bar[1]),
        batches=None if bar[2] == "Unknown" else float(bar[2]),
        values=canonical_values(values),
        rate=1 / seconds if seconds > 0 else None,
    )
