"""How far an attempt came, and since when its loss has been no number."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from runyard.domain import job_environment
from runyard.domain.failures.evidence import LastMetrics
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.series import Sample
from runyard.domain.progress import hints, reported
from runyard.domain.progress.point import Point
from runyard.domain.progress.reading import Reader as LogReader
from runyard.engine.parts import Parts
from runyard.logs.log_ends import LogEnds
from runyard.logs.log_tail import lines_between
from runyard.stores.base import Reader
from runyard.stores.base_metrics import MetricRange

LOSSES = ("loss", "train/loss", "train_loss")
_METRIC_LINES = 150  # of the log, read for what came last
_METRIC_BYTES = 64 * 1024  # of the metrics file
_LOOKED_AT = 1000  # samples of a series at once
_MOST_LOOKS = 5  # each shortens what is left several hundred times


def of_attempt(parts: Parts, job: Job, attempt: Attempt, ends: LogEnds) -> LastMetrics:
    """What the board knows, and what was written since it was last told."""
    board = parts.board
    current = job.attempt_number == attempt.number
    told: list[Sample] = []
    if current:
        told = next((seen for name in LOSSES if (seen := board.window(job.id, name))), [])
    losses = [(sample.step, sample.value) for sample in told]
    steps = [step for step, _ in losses if step is not None]
    progress = board.progress(job.id) if current else None
    if progress is not None and progress.step is not None:
        steps.append(progress.step)
    for point in _last_points(parts, job, attempt, ends):
        if point.step is not None:
            steps.append(point.step)
        value = next((point.values[name] for name in LOSSES if name in point.values), None)
        if value is not None:
            losses.append((point.step, value))
    if not losses:
        return LastMetrics(step=max(steps, default=None), first_step=min(steps, default=None))
    last = losses[-1][1]
    return LastMetrics(
        step=max(steps, default=None),
        first_step=min(steps, default=None),
        loss=last,
        loss_finite=math.isfinite(last),
        first_bad_step=_first_bad_step(parts, attempt, losses),
    )


def _last_points(parts: Parts, job: Job, attempt: Attempt, ends: LogEnds) -> list[Point]:
    run_dir = parts.settings.data_dir / "attempts" / attempt.attempt_id
    path = os.path.join(run_dir, job_environment.METRICS_FILE)
    at = attempt.created_at
    points: list[Point] = []
    size = _size(path)
    for text in lines_between(path, max(0, size - _METRIC_BYTES), size):
        found = reported.parse_line(text, at)
        if isinstance(found, Point):
            points.append(found)
    if points:
        return points
    reader = LogReader(hints.from_command(job.spec.command))
    for _, text in ends.tail[-_METRIC_LINES:]:
        for part in text.split("\r")[-20:]:
            points += reader.feed(part, at)
    return points + reader.finish()


def _first_bad_step(
    parts: Parts, attempt: Attempt, losses: Sequence[tuple[int | None, float]]
) -> int | None:
    """Where the loss first was no number and stayed so. What is in memory may be too short to
    tell: then the history is asked."""
    found = None
    for step, value in reversed(losses):
        if math.isfinite(value):
            return found
        found = step if step is not None else found
    with parts.store.read() as reader:
        known = (_kept_bad_step(reader, attempt, name) for name in LOSSES)
        earlier = next((step for step in known if step is not None), None)
    if earlier is None or found is None:
        return found if earlier is None else earlier
    return min(earlier, found)


def _kept_bad_step(reader: Reader, attempt: Attempt, name: str) -> int | None:
    """The same of the samples in the store. Of many only some are given, so that what lies between
    the last good and the first bad of them is looked at again, closer."""
    chosen = MetricRange(attempt=attempt.number)
    bad: Sample | None = None
    for _ in range(_MOST_LOOKS):
        found = reader.metric_series(attempt.job_id, name, _LOOKED_AT, chosen)
        good, after = _boundary(found.samples)
        if after is None:  # what came after it is not written yet, or was looked at before
            last = None if good is None or good.step is None else good.step + 1
            return last if bad is None else bad.step
        bad = after
        if not found.sampled:
            break
        since = chosen.since_step if good is None else good.step
        chosen = MetricRange(until=after.at, since_step=since, attempt=attempt.number)
    return None if bad is None else bad.step


def _boundary(samples: Sequence[Sample]) -> tuple[Sample | None, Sample | None]:
    """The last that is a number, and the first after it."""
    after: Sample | None = None
    for sample in reversed(samples):
        if math.isfinite(sample.value):
            return sample, after
        after = sample
    return None, after


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
