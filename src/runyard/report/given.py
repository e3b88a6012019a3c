"""What the yard gave this attempt: parameters, the scale of its batch, where to resume."""

from __future__ import annotations

import math
import os

from runyard.report import telling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def params() -> dict[str, Any]:
    """The job's `params` as this attempt has them; empty outside a job."""
    import json

    try:
        given = json.loads(os.environ.get("RUNYARD_PARAMS") or "{}")
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def batch_scale() -> float:
    """What to multiply the micro-batch with, and divide accumulation by: 1, or less after this
    job ran out of memory. Asking for it tells the server that a smaller one may help."""
    telling.mark(telling.BATCH_SCALE)
    text = os.environ.get("RUNYARD_BATCH_SCALE", "1")
    above, _, below = text.partition("/")
    try:
        scale = float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        return 1.0
    return scale if math.isfinite(scale) and scale > 0 else 1.0


def resume_from() -> str | None:
    """The checkpoint to resume from, found good before this attempt began, or None."""
    return os.environ.get("RUNYARD_RESUME_FROM") or None
