"""Reading metrics: of any range at most so many points, from rollups where there are too many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func, literal_column, select

from runyard.domain.monitoring.rollup import LEVELS, NO_STEP, Rollup, samples_of, step_of
from runyard.domain.monitoring.series import Sample, downsample
from runyard.stores.base_metrics import EVERYTHING, MetricRange, Series
from runyard.stores.column_types import Moment
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import training_jobs
from runyard.stores.watch_tables import metric_keys, metric_points, metric_rollups, node_points

_points, _rollups, _nodes = metric_points.c, metric_rollups.c, node_points.c
_LATEST = 1e18  # seconds; no clock comes to it
_SOME = 256
_FINE, _COARSE = LEVELS

_OF_SERIES = (
    _rollups.job_id == bindparam("the_job"),
    _rollups.key_id == bindparam("the_key"),
    _rollups.attempt == bindparam("the_attempt"),
    _rollups.level == bindparam("the_level"),
    _rollups.last_at >= bindparam("since"),
    _rollups.first_at <= bindparam("until"),
    _rollups.last_step >= bindparam("since_step"),
)
_POINTS_OF_SERIES = (
    _points.job_id == bindparam("the_job"),
    _points.key_id == bindparam("the_key"),
    _points.attempt == bindparam("the_attempt"),
)
_KEY_ID = Statement(select(metric_keys.c.id).where(metric_keys.c.name == bindparam("the_name")))
_NAMES_OF_JOB = Statement(
    select(metric_keys.c.name)
    .where(
        select(literal_column("1"))
        .where(_rollups.job_id == bindparam("the_job"), _rollups.key_id == metric_keys.c.id)
        .exists()
    )
    .order_by(metric_keys.c.name)
)
_NAMES_OF_NODE = Statement(
    select(metric_keys.c.name)
    .where(
        select(literal_column("1"))
        .where(_nodes.node_id == bindparam("the_node"), _nodes.key_id == metric_keys.c.id)
        .exists()
    )
    .order_by(metric_keys.c.name)
)
_ATTEMPTS = Statement(
    select(_rollups.attempt, func.min(_rollups.first_step).label("first_step"))
    .where(
        _rollups.job_id == bindparam("the_job"),
        _rollups.key_id == bindparam("the_key"),
        _rollups.level == literal_column(str(_COARSE)),
    )
    .group_by(_rollups.attempt)
    .order_by(_rollups.attempt)
)
_EXTENT = Statement(
    select(
        func.sum(_rollups.points).label("points"),
        func.min(_rollups.first_step).label("first_step"),
        func.max(_rollups.last_step).label("last_step"),
    ).where(*_OF_SERIES)
)
_BEGINNING = Statement(
    select(_rollups.first_step, _rollups.first_at).where(
        _rollups.job_id == bindparam("the_job"),
        _rollups.key_id == bindparam("the_key"),
        _rollups.attempt == bindparam("the_attempt"),
        _rollups.level == literal_column(str(_COARSE)),
        _rollups.bucket == literal_column("0"),
    )
)
_ROLLUPS = Statement(select(*_rollups).where(*_OF_SERIES).order_by(_rollups.bucket))
_RAW = Statement(
    select(_points.step, _points.at, _points.value)
    .where(
        *_POINTS_OF_SERIES,
        _points.step >= bindparam("first_step"),
        _points.step <= bindparam("last_step"),
        _points.at >= bindparam("since"),
        _points.at <= bindparam("until"),
    )
    .order_by(_points.step, _points.at)
)
_NEWEST = Statement(
    select(_points.step, _points.at, _points.value)
    .where(*_POINTS_OF_SERIES)
    .order_by(_points.step.desc(), _points.at.desc())
    .limit(bindparam("most"))
)
_OLDEST = Statement(
    select(_points.step, _points.at, _points.value)
    .where(*_POINTS_OF_SERIES)
    .order_by(_points.step, _points.at)
    .limit(bindparam("most"))
)
_NODE_RAW = Statement(
    select(_nodes.at, _nodes.value)
    .where(
        _nodes.node_id == bindparam("the_node"),
        _nodes.key_id == bindparam("the_key"),
        _nodes.at >= bindparam("since"),
        _nodes.at <= bindparam("until"),
    )
    .order_by(_nodes.at)
)


@cache
def _keys_named(count: int) -> Statement:
    names: list[Any] = [bindparam(f"id_{place}") for place in range(count)]
    return Statement(select(metric_keys).where(metric_keys.c.name.in_(names)))


def _jobs_with_points() -> Select[Any]:
    """Jumps from job to job in the key of the table instead of reading all of it."""
    first = select(func.min(_points.job_id).label("job_id")).cte("present", recursive=True)
    following = (
        select(func.min(_points.job_id)).where(_points.job_id > first.c.job_id).scalar_subquery()
    )
    every = first.union_all(select(following).where(first.c.job_id.is_not(None)))
    older = (
        select(literal_column("1"))
        .where(_points.job_id == training_jobs.c.id, _points.at < bindparam("before_at"))
        .exists()
    )
    return (
        select(training_jobs.c.id)
        .join(every, every.c.job_id == training_jobs.c.id)
        .where(training_jobs.c.submitted_at < bindparam("before", type_=Moment), older)
        .limit(bindparam("most"))
    )


_OLD_JOBS = Statement(_jobs_with_points())


def keys_by_id(values: Sequence[int] | Sequence[str]) -> dict[str, Any]:
    """As parameters of a statement that takes several; few sizes, so that few are compiled."""
    size = next(size for size in (1, 4, 16, 64, _SOME) if size >= len(values))
    return {f"id_{place}": values[min(place, len(values) - 1)] for place in range(size)}


def value_from(stored: float | None) -> float:
    return math.nan if stored is None else stored


class MetricReads(Session):
    def metric_names(self, job_id: int) -> list[str]:
        return [row.name for row in self._rows(_NAMES_OF_JOB, the_job=job_id)]

    def metric_series(
        self, job_id: int, name: str, most: int, chosen: MetricRange = EVERYTHING
    ) -> Series:
        key = self._row(_KEY_ID, the_name=name)
        if key is None or most <= 0:
            return Series((), False)
        reading = _Reading(self, job_id, key.id, name, chosen)
        return reading.series(self._rows(_ATTEMPTS, the_job=job_id, the_key=key.id), most)

    def metric_tail(self, job_id: int, attempt: int, name: str, most: int) -> list[Sample]:
        key = self._row(_KEY_ID, the_name=name)
        if key is None:
            return []
        series = {"the_job": job_id, "the_key": key.id, "the_attempt": attempt}
        rows = self._rows(_NEWEST, **series, most=most)
        return [_sample(name, row) for row in reversed(rows)]

    def node_metric_names(self, node_id: str) -> list[str]:
        return [row.name for row in self._rows(_NAMES_OF_NODE, the_node=node_id)]

    def node_series(
        self, node_id: str, name: str, most: int, chosen: MetricRange = EVERYTHING
    ) -> Series:
        key = self._row(_KEY_ID, the_name=name)
        if key is None:
            return Series((), False)
        rows = self._rows(_NODE_RAW, the_node=node_id, the_key=key.id, **_times(chosen))
        samples = [Sample(name, row.at, value_from(row.value)) for row in rows]
        kept = downsample(samples, most)
        return Series(tuple(kept), len(kept) < len(samples))

    def jobs_with_points_before(self, before: float, limit: int = 100) -> list[int]:
        self._driver.before_search()
        rows = self._rows(_OLD_JOBS, before=before, before_at=before, most=limit)
        return [row.id for row in rows]

    def _key_ids(self, names: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(names), _SOME):
            some = keys_by_id(names[start : start + _SOME])
            found |= {row.name: row.id for row in self._rows(_keys_named(len(some)), **some)}
        return found


class _Reading:
    """One series, over the attempts that make up the run."""

    def __init__(
        self, session: MetricReads, job_id: int, key_id: int, name: str, chosen: MetricRange
    ) -> None:
        self._session = session
        self._name = name
        self._chosen = chosen
        self._series = {"the_job": job_id, "the_key": key_id}
        self._range = {**_times(chosen), "since_step": _since_step(chosen)}

    def series(self, attempts: list[Any], most: int) -> Series:
        wanted = self._chosen.attempt
        parts = [
            (row.attempt, _done_again_from(attempts[place + 1 :]) if wanted is None else None)
            for place, row in enumerate(attempts)
            if wanted is None or row.attempt == wanted
        ]
        extents = [self._extent(attempt) for attempt, _ in parts]
        level = _level_for(sum(extent.points or 0 for extent in extents), most)
        samples: list[Sample] = []
        whole = True
        for (attempt, end), extent in zip(parts, extents, strict=True):
            if extent.points:
                found, complete = self._part(attempt, extent, level)
                whole = whole and complete
                samples += [
                    one for one in found if self._is_wanted(one) and not _is_past(one, end)
                ]
        kept = downsample(samples, most)
        return Series(tuple(kept), not whole or len(kept) < len(samples))

    def _part(self, attempt: int, extent: Any, level: int | None) -> tuple[list[Sample], bool]:
        if level is not None:
            return self._with_ends(attempt, self._rolled(attempt, level)), False
        raw = self._raw(attempt, extent)
        if not self._is_pruned(attempt):
            return raw, True
        # The oldest single points went by age; their rollups are still there.
        first = min((sample.at for sample in raw), default=math.inf)
        old = [one for one in self._rolled(attempt, _FINE) if one.at < first]
        merged = _in_order(old + raw)
        return merged, len(merged) == len(raw)

    def _is_pruned(self, attempt: int) -> bool:
        """Whether single points are gone that the rollups tell of."""
        oldest = self._session._row(_OLDEST, **self._series, the_attempt=attempt, most=1)
        told = self._session._row(_BEGINNING, **self._series, the_attempt=attempt)
        if oldest is None or told is None:
            return True
        later = oldest.step == NO_STEP and oldest.at > told.first_at
        return bool(later or oldest.step > told.first_step)

    def _extent(self, attempt: int) -> Any:
        return self._session._row(
            _EXTENT, **self._series, the_attempt=attempt, the_level=_FINE, **self._range
        )

    def _rolled(self, attempt: int, level: int) -> list[Sample]:
        rows = self._session._rows(
            _ROLLUPS, **self._series, the_attempt=attempt, the_level=level, **self._range
        )
        return samples_of(self._name, (Rollup(*row[3:]) for row in rows))

    def _raw(self, attempt: int, extent: Any) -> list[Sample]:
        rows = self._session._rows(
            _RAW,
            **self._series,
            the_attempt=attempt,
            first_step=max(extent.first_step, self._range["since_step"]),
            last_step=extent.last_step,
            **_times(self._chosen),
        )
        return [_sample(self._name, row) for row in rows]

    def _with_ends(self, attempt: int, rolled: list[Sample]) -> list[Sample]:
        ends = [
            _sample(self._name, row)
            for statement in (_OLDEST, _NEWEST)
            for row in self._session._rows(statement, **self._series, the_attempt=attempt, most=1)
        ]
        return _in_order(rolled + ends)

    def _is_wanted(self, sample: Sample) -> bool:
        times = self._range
        in_time = times["since"] <= sample.at <= times["until"]
        return in_time and step_of(sample) >= times["since_step"]


def _times(chosen: MetricRange) -> dict[str, float]:
    return {
        "since": -_LATEST if chosen.since is None else chosen.since,
        "until": _LATEST if chosen.until is None else chosen.until,
    }


def _since_step(chosen: MetricRange) -> int:
    return NO_STEP if chosen.since_step is None else chosen.since_step


def _level_for(points: int, most: int) -> int | None:
    """The coarsest that still has more to choose from than is wanted: two points each."""
    for level in reversed(LEVELS):
        if points // level * 2 >= most:
            return level
    return None


def _done_again_from(later: Sequence[Any]) -> int | None:
    """The first step that a later attempt did again."""
    return min((row.first_step for row in later if row.first_step >= 0), default=None)


def _is_past(sample: Sample, end: int | None) -> bool:
    return end is not None and sample.step is not None and sample.step >= end


def _in_order(samples: Sequence[Sample]) -> list[Sample]:
    found = {(step_of(sample), sample.at): sample for sample in samples}
    return [found[place] for place in sorted(found)]


def _sample(name: str, row: Any) -> Sample:
    return Sample(name, row.at, value_from(row.value), None if row.step == NO_STEP else row.step)
