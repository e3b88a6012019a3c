"""Leases that clients hold on their jobs."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, func, insert, select, update

from runyard.stores.base import Lease
from runyard.stores.column_types import Moment
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import leases

_of_job = leases.c.job_id == bindparam("the_job")
_moment = bindparam("moment", type_=Moment)
_ONE = Statement(select(leases).where(_of_job))
_ALL = Statement(select(leases).order_by(leases.c.expires_at, leases.c.job_id))
_EXPIRED = Statement(
    select(leases)
    .where(leases.c.expires_at <= _moment)
    .order_by(leases.c.expires_at, leases.c.job_id)
)
_NEXT = Statement(select(func.min(leases.c.expires_at).label("first")))
_UPDATE = Statement(update(leases).where(_of_job), ("expires_at",))
_INSERT = Statement(insert(leases).inline(), ("job_id", "expires_at"))
_DELETE = Statement(delete(leases).where(_of_job))
_DELETE_EXPIRED = Statement(delete(leases).where(_of_job, leases.c.expires_at <= _moment))


class LeaseReads(Session):
    def lease(self, job_id: int) -> Lease | None:
        row = self._row(_ONE, the_job=job_id)
        return None if row is None else Lease(row.job_id, row.expires_at)

    def leases(self) -> list[Lease]:
        return [Lease(row.job_id, row.expires_at) for row in self._rows(_ALL)]

    def expired_leases(self, now: float) -> list[Lease]:
        return [Lease(row.job_id, row.expires_at) for row in self._rows(_EXPIRED, moment=now)]

    def next_lease_end(self) -> float | None:
        row = self._row(_NEXT)
        return None if row is None else row.first


class LeaseWrites(LeaseReads):
    def put_lease(self, lease: Lease) -> None:
        if not self._run(_UPDATE, the_job=lease.job_id, expires_at=lease.expires_at):
            self._run(_INSERT, job_id=lease.job_id, expires_at=lease.expires_at)

    def drop_lease(self, job_id: int, *, expired_by: float | None = None) -> bool:
        if expired_by is None:
            return self._run(_DELETE, the_job=job_id) > 0
        return self._run(_DELETE_EXPIRED, the_job=job_id, moment=expired_by) > 0
