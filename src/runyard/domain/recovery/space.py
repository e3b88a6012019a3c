"""How much room on a disk is enough to try again after it was full."""

from __future__ import annotations

_MARGIN = 1.1  # a checkpoint grows a little, and logs are written beside it
_FLOOR_BYTES = 1 << 30
_FLOOR_PART = 0.05
_MOST_PART = 0.9  # of a disk: more would be waited for in vain


def wanted_bytes(largest: int | None, total: int | None) -> int:
    """`largest` is the largest checkpoint so far, whole or cut short by the full disk; `total` the
    size of the disk. Without checkpoints a twentieth of the disk, a gigabyte at most."""
    floor = _FLOOR_BYTES if total is None else min(_FLOOR_BYTES, int(total * _FLOOR_PART))
    wanted = max(floor, int((largest or 0) * _MARGIN))
    return wanted if total is None else min(wanted, int(total * _MOST_PART))
