"""Starts that find a process of Ray's waiting on their node."""

from __future__ import annotations

from runyard.supervisor import journal
from yards import until


def fresh(yard) -> bool:
    """Whether the process of one more attempt was started for it."""
    ref = yard.submit(["true"])
    yard.wait(ref, "completed", seconds=90)
    placed = journal.read(f"{yard.data}/attempts/{ref}.1").first("placed")
    assert placed is not None
    [part] = placed["slices"]
    assert part["age_s"] > 0
    return bool(part["fresh"])


def test_after_a_slow_start_the_next_ones_find_a_process(ray_yard):
    """Ray's own stock is used up first; from then on the bridge keeps one."""
    until(lambda: fresh(ray_yard), 120)
    # One is made between starts, never beside them: look now and then, not one after the other.
    until(lambda: not fresh(ray_yard), 90, every=3)
