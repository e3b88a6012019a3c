"""What many jobs cost: time to start, memory, processor (R54)."""

import os
import time

import pytest
from keeper_yard import wait_for

from runyard.supervisor import journal


def test_spawn_200_jobs_rate(yard):
    """All run once and are recorded; a slow machine does some 200 a second, this asks for 2."""
    yard.keeper.ensure()
    began = time.monotonic()
    ids = [yard.start(["/bin/sh", "-c", f"exit {number % 7}"]) for number in range(200)]
    for attempt_id in ids:
        folder = yard.folder(attempt_id)
        wait_for(lambda f=folder: journal.read(f).exit, "its end", timeout=60)
    assert 200 / (time.monotonic() - began) > 2
    for number, attempt_id in enumerate(ids):
        assert yard.journal(attempt_id).exit["code"] == number % 7
        yard.check_ended(attempt_id)


def test_pss_per_supervisor_under_3mb(yard):
    """Many jobs cost little."""
    ids = [yard.start(["/bin/sleep", "600"]) for _ in range(10)]
    for attempt_id in ids:
        yard.wait_job(attempt_id)
    sizes = sorted(proportional(yard.supervisor_pid(attempt_id)) for attempt_id in ids)
    assert sizes[len(sizes) // 2] < 3 << 10


def proportional(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    raise AssertionError


@pytest.mark.serial
def test_idle_cpu_100_supervisors_under_1_percent(yard):
    """A running job costs its supervisor a few wake-ups a minute."""
    ids = [yard.start(["/bin/sleep", "600"]) for _ in range(100)]
    for attempt_id in ids:
        yard.wait_job(attempt_id)
    pids = [yard.supervisor_pid(attempt_id) for attempt_id in ids]
    beats = [f"{yard.folder(attempt_id)}/hb" for attempt_id in ids]
    wait_for(lambda: all(os.path.exists(path) for path in beats), "the first heartbeat")
    began, before = time.monotonic(), sum(map(seconds_run, pids))
    first = [os.stat(path).st_mtime for path in beats]
    wait_for(
        lambda: all(os.stat(p).st_mtime > t for p, t in zip(beats, first, strict=True)),
        "the second heartbeat",
    )
    used = sum(map(seconds_run, pids)) - before
    assert used / (time.monotonic() - began) < 0.01


def seconds_run(pid):
    """Told in nanoseconds: in ticks of 10 ms a few wake-ups count for nothing or for far too
    much."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9
