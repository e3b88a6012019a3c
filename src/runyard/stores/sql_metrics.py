"""Metrics: points as they came, and their rollups in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from sqlalchemy import Table, and_, bindparam, delete, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY, Insert
from sqlalchemy.dialects.postgresql import insert as insert_or

from runyard.domain.monitoring.rollup import LEVELS, Rollup, roll, step_of
from runyard.domain.monitoring.series import Sample, downsample
from runyard.stores.prepared import Statement
from runyard.stores.sql_metric_reads import MetricReads, keys_by_id, value_from
from runyard.stores.tables import training_jobs
from runyard.stores.watch_tables import metric_keys, metric_points, metric_rollups, node_points

_points, _rollups, _nodes = metric_points.c, metric_rollups.c, node_points.c
_SOME = 256


def _replacing(rolled: Insert) -> Insert:
    """An INSERT that puts a rollup in the place of the one that had fewer points."""
    return rolled.on_conflict_do_update(
        index_elements=list(metric_rollups.primary_key),
        set_={c.key: rolled.excluded[c.key] for c in _rollups if not c.primary_key},
    )


def _from_columns(table: Table) -> Insert:
    """An INSERT that takes each column as a list."""
    lists = [func.unnest(bindparam(c.key, type_=ARRAY(c.type))).label(c.key) for c in table.c]
    return insert_or(table).from_select([c.key for c in table.c], select(*lists))


_HAS_JOB = Statement(select(training_jobs.c.id).where(training_jobs.c.id == bindparam("the_job")))
_INSERT_KEY = Statement(insert_or(metric_keys).on_conflict_do_nothing(), ("name",))
# What was read twice after a restart is there already.
_INSERT_POINT = Statement(
    insert_or(metric_points).on_conflict_do_nothing(), [c.key for c in _points]
)
_INSERT_NODE_POINT = Statement(
    insert_or(node_points).on_conflict_do_nothing(), [c.key for c in _nodes]
)
_PUT_ROLLUP = Statement(_replacing(insert_or(metric_rollups)), [c.key for c in _rollups])
# For a database to which each row would be a message of its own.
_POINTS_AT_ONCE = Statement(_from_columns(metric_points).on_conflict_do_nothing())
_ROLLUPS_AT_ONCE = Statement(_replacing(_from_columns(metric_rollups)))
_THERE = Statement(
    select(_points.step, _points.at).where(
        _points.job_id == bindparam("the_job"),
        _points.key_id == bindparam("the_key"),
        _points.attempt == bindparam("the_attempt"),
        _points.step >= bindparam("low"),
        _points.step <= bindparam("high"),
    )
)
_PRUNE = Statement(
    delete(metric_points).where(
        _points.job_id == bindparam("the_job"), _points.at < bindparam("before")
    )
)
_OLD_NODE_POINTS = Statement(
    select(_nodes.node_id, _nodes.key_id, _nodes.at)
    .where(_nodes.at < bindparam("before"))
    .order_by(_nodes.at)
    .limit(bindparam("most"))
)
_NODE_POINTS_BETWEEN = Statement(
    select(*_nodes)
    .where(_nodes.at >= bindparam("since"), _nodes.at < bindparam("until"))
    .order_by(_nodes.at)
)
_DELETE_NODE_POINT = Statement(
    delete(node_points).where(
        _nodes.node_id == bindparam("the_node"),
        _nodes.key_id == bindparam("the_key"),
        _nodes.at == bindparam("the_at"),
    )
)


@cache
def _open_rollups(count: int) -> Statement:
    """The newest rollup of each level of some series of one attempt."""
    newest = metric_rollups.alias("newest")
    bucket = (
        select(func.max(newest.c.bucket))
        .where(
            newest.c.job_id == bindparam("the_job"),
            newest.c.key_id == metric_keys.c.id,
            newest.c.attempt == bindparam("the_attempt"),
            newest.c.level == _rollups.level,
        )
        .scalar_subquery()
    )
    levels: list[Any] = [literal_column(str(level)) for level in LEVELS]
    ids: list[Any] = [bindparam(f"id_{place}") for place in range(count)]
    return Statement(
        select(*_rollups)
        .select_from(
            metric_keys.join(
                metric_rollups,
                and_(
                    _rollups.job_id == bindparam("the_job"),
                    _rollups.key_id == metric_keys.c.id,
                    _rollups.attempt == bindparam("the_attempt"),
                    _rollups.level.in_(levels),
                ),
            )
        )
        .where(metric_keys.c.id.in_(ids), _rollups.bucket == bucket)
    )


class MetricWrites(MetricReads):
    def insert_points(self, job_id: int, attempt: int, samples: Sequence[Sample]) -> int:
        if not samples or self._row(_HAS_JOB, the_job=job_id) is None:
            return 0
        ids = self._intern(sample.name for sample in samples)
        by_key: dict[int, list[Sample]] = {}
        for sample in samples:
            by_key.setdefault(ids[sample.name], []).append(sample)
        last = self._last_rollups(job_id, attempt, list(by_key))
        points: list[dict[str, Any]] = []
        rollups: list[dict[str, Any]] = []
        for key_id, given in by_key.items():
            series = {"job_id": job_id, "key_id": key_id, "attempt": attempt}
            new = self._new_ones(series, last.get((key_id, LEVELS[0])), given)
            points += [_point(series, sample) for sample in new]
            for level in LEVELS if new else ():
                changed = roll(last.get((key_id, level)), new, level)
                rollups += [{**series, **_columns(rollup)} for rollup in changed]
        if points and self._driver.takes_arrays:
            self._run(_POINTS_AT_ONCE, **_as_columns(metric_points, points))
            self._run(_ROLLUPS_AT_ONCE, **_as_columns(metric_rollups, rollups))
        elif points:
            self._run_many(_INSERT_POINT, points)
            self._run_many(_PUT_ROLLUP, rollups)
        return len(points)

    def insert_node_points(self, node_id: str, samples: Sequence[Sample]) -> None:
        ids = self._intern(sample.name for sample in samples)
        rows = [
            {
                "node_id": node_id,
                "key_id": ids[sample.name],
                "at": sample.at,
                "value": _stored(sample.value),
            }
            for sample in samples
        ]
        self._run_if_any(_INSERT_NODE_POINT, rows)

    def prune_points(self, job_id: int, before: float) -> int:
        return self._run(_PRUNE, the_job=job_id, before=before)

    def prune_node_points(self, before: float, limit: int = 50_000) -> int:
        old = self._rows(_OLD_NODE_POINTS, before=before, most=limit)
        self._delete_node_points(old)
        return len(old)

    def thin_node_points(self, since: float, until: float, width_s: float) -> int:
        stretches: dict[tuple[str, int, int], list[Any]] = {}
        for row in self._rows(_NODE_POINTS_BETWEEN, since=since, until=until):
            place = row.node_id, row.key_id, int(row.at // width_s)
            stretches.setdefault(place, []).append(row)
        gone = [row for rows in stretches.values() for row in _not_standing_out(rows)]
        self._delete_node_points(gone)
        return len(gone)

    def _delete_node_points(self, rows: Iterable[Any]) -> None:
        self._run_if_any(
            _DELETE_NODE_POINT,
            [{"the_node": row.node_id, "the_key": row.key_id, "the_at": row.at} for row in rows],
        )

    def _intern(self, names: Iterable[str]) -> dict[str, int]:
        """In one order for everybody, so that two servers do not wait for each other."""
        wanted = sorted(set(names))
        ids = self._key_ids(wanted)
        missing = [name for name in wanted if name not in ids]
        if missing:
            self._run_many(_INSERT_KEY, [{"name": name} for name in missing])
            ids |= self._key_ids(missing)
        return ids

    def _last_rollups(
        self, job_id: int, attempt: int, key_ids: list[int]
    ) -> dict[tuple[int, int], Rollup]:
        found: dict[tuple[int, int], Rollup] = {}
        for start in range(0, len(key_ids), _SOME):
            ids = keys_by_id(key_ids[start : start + _SOME])
            rows = self._rows(_open_rollups(len(ids)), the_job=job_id, the_attempt=attempt, **ids)
            found |= {(row.key_id, row.level): Rollup(*row[3:]) for row in rows}
        return found

    def _new_ones(
        self, series: Mapping[str, int], known: Rollup | None, given: list[Sample]
    ) -> list[Sample]:
        """Without those that are there already: a rollup must count each once."""
        places = [(step_of(sample), sample.at) for sample in given]
        rising = all(one < other for one, other in pairwise(places))
        if rising and (known is None or places[0] > (known.last_step, known.last_at)):
            return given
        rows = self._rows(
            _THERE,
            the_job=series["job_id"],
            the_key=series["key_id"],
            the_attempt=series["attempt"],
            low=min(places)[0],
            high=max(places)[0],
        )
        there = {(row.step, row.at) for row in rows}
        new = []
        for place, sample in zip(places, given, strict=True):
            if place not in there:
                there.add(place)
                new.append(sample)
        return new

    def _run_if_any(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._run_many(statement, rows)


def _stored(value: float) -> float | None:
    return None if value != value else value


def _point(series: Mapping[str, int], sample: Sample) -> dict[str, Any]:
    return {
        **series,
        "step": step_of(sample),
        "at": sample.at,
        "value": _stored(sample.value),
    }


def _columns(rollup: Rollup) -> dict[str, Any]:
    return {name: getattr(rollup, name) for name in Rollup.__slots__}


def _as_columns(table: Table, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {c.key: [row[c.key] for row in rows] for c in table.c}


def _not_standing_out(rows: list[Any]) -> list[Any]:
    samples = [Sample("", row.at, value_from(row.value), place) for place, row in enumerate(rows)]
    kept = {sample.step for sample in downsample(samples, 4)}
    return [row for place, row in enumerate(rows) if place not in kept]
