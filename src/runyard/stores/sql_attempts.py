"""Attempts and the grants they hold."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    bindparam,
    delete,
    insert,
    literal_column,
    select,
    text,
    update,
)

from runyard.domain import errors, slices
from runyard.domain.job import Attempt
from runyard.domain.slices import Slice
from runyard.domain.states import AttemptStatus
from runyard.stores import attempt_rows, column_values
from runyard.stores.base import ActiveAttempt
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import IS_LIVE, attempts, grants, training_jobs

WHOLE_GPU = 1000

_attempts = attempts.c
_LIVE = text(IS_LIVE)
_BY_ID = Statement(select(attempts).where(_attempts.attempt_id == bindparam("the_id")))
_OF_JOB = Statement(
    select(attempts).where(_attempts.job_id == bindparam("the_job")).order_by(_attempts.number)
)
_live = select(attempts).where(_LIVE).order_by(_attempts.created_at, _attempts.attempt_id)
_ALL_LIVE = Statement(_live)
_LIVE_OF_NODE = Statement(_live.where(_attempts.node_id == bindparam("node")))
_ACTIVE = Statement(
    select(
        _attempts.attempt_id,
        _attempts.job_id,
        _attempts.machine_id,
        _attempts.node_id,
        _attempts.cpu_milli,
        _attempts.memory_mb,
        _attempts.gpu_milli,
        _attempts.gpu_type,
        _attempts.port_count,
        _attempts.gpus,
        _attempts.ports,
        _attempts.started_at,
        _attempts.slices,
        training_jobs.c.array_id,
        training_jobs.c.timeout_s,
    )
    .select_from(attempts.join(training_jobs, _attempts.job_id == training_jobs.c.id))
    .where(_LIVE)
    .order_by(_attempts.created_at, _attempts.attempt_id)
)


@cache
def _some_by_id(count: int) -> Statement:
    places = [bindparam(f"id_{place}", type_=_attempts.attempt_id.type) for place in range(count)]
    return Statement(select(attempts).where(_attempts.attempt_id.in_(places)))


_INSERT = Statement(insert(attempts).inline(), [c.key for c in _attempts])
_INSERT_GRANT = Statement(insert(grants).inline(), [c.key for c in grants.c])
_SHARES = Statement(
    select(grants.c.share, grants.c.milli).where(
        grants.c.machine_id == bindparam("machine"),
        grants.c.kind == "gpu",
        grants.c.resource == bindparam("uuid"),
    )
)
_TAKE_OVER = Statement(
    update(attempts).where(
        _attempts.attempt_id == bindparam("the_id"),
        _attempts.node_id == bindparam("owner"),
        _LIVE,
    ),
    ("node_id",),
)
_RELEASE = Statement(delete(grants).where(grants.c.attempt_id == bindparam("the_id")))

CHANGES = frozenset(c.key for c in _attempts) - {
    "attempt_id",
    "job_id",
    "number",
    "created_at",
    "cpu_milli",
    "memory_mb",
    "gpu_milli",
    "gpu_type",
    "port_count",
}


@cache
def _guarded_update(columns: frozenset[str], expect: frozenset[AttemptStatus]) -> Statement:
    words: list[ColumnElement[str]] = [
        literal_column(f"'{status.value}'") for status in sorted(expect)
    ]
    guarded = update(attempts).where(
        _attempts.attempt_id == bindparam("the_id"), _attempts.status.in_(words)
    )
    if not columns:  # only the guard
        guarded = guarded.values(status=_attempts.status)
    return Statement(guarded, sorted(columns))


class AttemptReads(Session):
    def attempt(self, attempt_id: str) -> Attempt | None:
        row = self._row(_BY_ID, the_id=attempt_id)
        return None if row is None else attempt_rows.attempt_from(row)

    def attempts_by_id(self, ids: Sequence[str]) -> dict[str, Attempt]:
        found = self._rows_by_id(_some_by_id, ids)
        return {row.attempt_id: attempt_rows.attempt_from(row) for row in found}

    def attempts(self, job_id: int) -> list[Attempt]:
        return [attempt_rows.attempt_from(row) for row in self._rows(_OF_JOB, the_job=job_id)]

    def live_attempts(self, node_id: str | None = None) -> list[Attempt]:
        if node_id is None:
            found = self._rows(_ALL_LIVE)
        else:
            found = self._rows(_LIVE_OF_NODE, node=node_id)
        return [attempt_rows.attempt_from(row) for row in found]

    def active_attempts(self) -> list[ActiveAttempt]:
        return [
            ActiveAttempt(
                attempt_id=row.attempt_id,
                job_id=row.job_id,
                machine_id=row.machine_id,
                node_id=row.node_id,
                request=column_values.request_from(row),
                gpus=attempt_rows.gpus_from(row.gpus),
                ports=tuple(row.ports),
                array_id=row.array_id,
                started_at=row.started_at,
                expected_s=row.timeout_s,
                slices=slices.from_list(row.slices),
            )
            for row in self._rows(_ACTIVE)
        ]


class AttemptWrites(AttemptReads):
    def insert_attempt(self, attempt: Attempt) -> None:
        self._run(_INSERT, **attempt_rows.attempt_columns(attempt))
        parts: Sequence[Attempt | Slice] = attempt.slices or (attempt,)
        for machine_id in sorted({part.machine_id for part in parts if part.gpus or part.ports}):
            self._driver.before_grants(machine_id)
        for part in parts:
            # One by one: two slices on one machine may share a GPU.
            if part.gpus or part.ports:
                self._run_many(_INSERT_GRANT, self._grants_of(attempt.attempt_id, part))

    def _grants_of(self, attempt_id: str, part: Attempt | Slice) -> list[dict[str, Any]]:
        held = {"machine_id": part.machine_id, "attempt_id": attempt_id}
        wanted = [
            {
                **held,
                "kind": "gpu",
                "resource": gpu.uuid,
                "share": self._free_share(part.machine_id, gpu.uuid, gpu.milli),
                "milli": gpu.milli,
            }
            for gpu in part.gpus
        ]
        wanted += [
            {**held, "kind": "port", "resource": str(port), "share": 0, "milli": WHOLE_GPU}
            for port in part.ports
        ]
        return wanted

    def _free_share(self, machine_id: str, uuid: str, milli: int) -> int:
        """The lowest free number, so that two who take a share at once take the same one."""
        taken = {
            row.share: row.milli for row in self._rows(_SHARES, machine=machine_id, uuid=uuid)
        }
        if sum(taken.values()) + milli > WHOLE_GPU:
            raise errors.StaleWrite(f"GPU {uuid} has too little left.", gpu=uuid)
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def update_attempt(
        self, attempt_id: str, expect: frozenset[AttemptStatus], **changes: Any
    ) -> None:
        unknown = changes.keys() - CHANGES
        if unknown:
            raise TypeError(f"an attempt cannot change {', '.join(sorted(unknown))}")
        columns = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in changes.items()
        }
        if "gpus" in columns:
            columns["gpus"] = attempt_rows.gpu_list(columns["gpus"])
        statement = _guarded_update(frozenset(columns), expect)
        if not expect or not self._run(statement, the_id=attempt_id, **columns):
            raise errors.StaleWrite(attempt=attempt_id)

    def take_over(self, attempt_id: str, from_node: str, to_node: str) -> bool:
        owned = {"the_id": attempt_id, "owner": from_node}
        return self._run(_TAKE_OVER, **owned, node_id=to_node) > 0

    def release_grants(self, attempt_id: str) -> None:
        self._run(_RELEASE, the_id=attempt_id)
