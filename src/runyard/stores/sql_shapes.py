"""Shapes: what waiting jobs that are alike to the scheduler share."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import bindparam, delete, exists, insert, select, update

from runyard.domain.job import JobSpec, Priority
from runyard.domain.reasons import Reason
from runyard.stores import column_values
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import shapes, training_jobs

_BY_KEY = Statement(select(shapes.c.id).where(shapes.c.key == bindparam("the_key")))
_WAIT = Statement(
    select(shapes.c.wait_code, shapes.c.wait_params).where(shapes.c.id == bindparam("shape"))
)
_INSERT = Statement(
    insert(shapes).inline(),
    [c.key for c in shapes.c if c.key not in ("id", "wait_code", "wait_params")],
    gives=shapes.c.id,
)
_SET_WAIT = Statement(
    update(shapes).where(shapes.c.id == bindparam("shape")), ("wait_code", "wait_params")
)
_PRUNE = Statement(
    delete(shapes).where(
        ~exists(select(training_jobs.c.id).where(training_jobs.c.shape_id == shapes.c.id))
    )
)


def shape_key(priority: Priority, spec: JobSpec) -> str:
    request = spec.request
    array = f"{spec.array.limit}/{spec.array.array_id}" if spec.array else ""
    return (
        f"{priority.value}|{request.cpu_milli}|{request.memory_mb}|{request.gpu_milli}"
        f"|{request.gpu_type or ''}|{request.port_count}|{spec.executor}|{array}{_gang_key(spec)}"
    )


def _gang_key(spec: JobSpec) -> str:
    return f"|{spec.gang.nodes}|{spec.gang.placement}" if spec.gang else ""


class ShapeReads(Session):
    def shape_wait(self, shape_id: int) -> Reason | None:
        row = self._row(_WAIT, shape=shape_id)
        return None if row is None else column_values.reason_from(row.wait_code, row.wait_params)


class ShapeWrites(ShapeReads):
    def set_shape_wait(self, shape_id: int, wait: Reason | None) -> None:
        self._run(
            _SET_WAIT,
            shape=shape_id,
            wait_code=wait.code if wait else None,
            wait_params=wait.params if wait else None,
        )

    def prune_shapes(self) -> int:
        self._shape_cache.clear()
        self._driver.before_search()
        return self._run(_PRUNE)

    def _shape_id(self, priority: Priority, spec: JobSpec) -> int:
        key = shape_key(priority, spec)
        known = self._shape_cache.get(key) or self._new_shapes.get(key)
        if known is None:
            known = self._new_shapes[key] = self._find_or_insert(key, priority, spec)
        return known

    def _find_or_insert(self, key: str, priority: Priority, spec: JobSpec) -> int:
        row = self._row(_BY_KEY, the_key=key)
        if row is not None:
            found: int = row.id
            return found
        return self._insert(
            _INSERT,
            key=key,
            priority=priority.value,
            **column_values.request_columns(spec.request),
            executor=spec.executor,
            array_id=spec.array.array_id if spec.array else None,
            array_limit=spec.array.limit if spec.array else 0,
            gang=asdict(spec.gang) if spec.gang else None,
        )
