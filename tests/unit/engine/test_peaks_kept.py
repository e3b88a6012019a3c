"""The most an attempt used, from readings of which the exact one is rare (R39)."""

from __future__ import annotations

import pytest

from runyard.domain.monitoring.series import Sample
from yards import until


def suggested_gb(engine, *readings):
    """What is suggested after a run with these readings: (name, MB)."""
    ref = engine.running("train", name="same")
    job = engine.job(ref)
    samples = [
        Sample(f"system.{name}", 1000.0 + place, value)
        for place, (name, value) in enumerate(readings)
    ]
    engine.parts.board.record(job.id, 1, samples)
    engine.finish(ref, 0)
    engine.wait(ref, "completed")
    other = engine.job(engine.submit("train", name="same", hold=True))
    found = until(lambda: engine.yard.runtime.peak_keeping.suggestion(other))
    return found.memory_gb


@pytest.mark.parametrize(
    ("readings", "gigabytes"),
    [
        # Read once, early, when it had not loaded its model: it grew to ten times that.
        ([("rss_mb", 1024), ("pss_mb", 1024), ("rss_mb", 10_240)], 12.0),
        # Half of it is shared between its processes, also of what came later.
        ([("rss_mb", 2048), ("pss_mb", 1024), ("rss_mb", 10_240), ("rss_mb", 2048)], 6.0),
        # The exact reading was the largest.
        ([("rss_mb", 2048), ("rss_mb", 8192), ("pss_mb", 8192), ("rss_mb", 512)], 9.6),
        ([("rss_mb", 8192), ("pss_mb", 7168), ("rss_mb", 512), ("pss_mb", 128)], 8.4),
        # Never read exactly, and read while it was ending.
        ([("rss_mb", 1024)], 1.2),
        ([("rss_mb", 1024), ("rss_mb", 0), ("pss_mb", 0)], 1.2),
    ],
)
def test_the_rare_exact_reading_does_not_hide_what_came_after_it(engine, readings, gigabytes):
    assert suggested_gb(engine, *readings) == pytest.approx(gigabytes)
