"""The line by which a program tells that it asks for RUNYARD_BATCH_SCALE, so that halving it
further may help."""

from __future__ import annotations

import json

KIND = "batch_scale"


def is_mark(line: str) -> bool:
    """A line of a metrics file; `runyard.report` writes one when it is asked for the scale."""
    if KIND not in line or "kind" not in line:
        return False
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and fields.get("kind") == KIND
