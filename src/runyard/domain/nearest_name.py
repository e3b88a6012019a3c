"""The name a person most likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ALIKE = 0.5  # of what difflib calls a ratio: `gpus` is still taken for `gpu_count`


def nearest(word: str, names: Iterable[str], *, alike: float = _ALIKE) -> str | None:
    """None when nothing is near."""
    folded = {name.lower(): name for name in names}
    found = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=alike)
    return folded[found[0]] if found else None
