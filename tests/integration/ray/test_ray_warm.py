"""Starts that find a process of Ray's waiting on their node."""

from __future__ import annotations

import time

import pytest

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


@pytest.mark.timeout(400)
def test_after_a_slow_start_the_next_ones_find_a_process(ray_yard):
    """Ray's own stock is used up first; from then on the bridge keeps one."""
    until(lambda: fresh(ray_yard), 150)
    # One is made between starts, never beside them: look now and then, not one after the other,
    # and ever later where starting a process takes long.
    for pause in (2, 4, 8, 16, 32):
        time.sleep(pause)
        if not fresh(ray_yard):
            return
    pytest.fail("every attempt had to start a process")
