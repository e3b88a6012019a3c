"""One open transaction on a database driver: what all queries of the store are run with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

from runyard.domain.events import StoredEvent
from runyard.domain.monitoring.alert import Alert
from runyard.stores.base_notifications import EndedJob, Happened
from runyard.stores.prepared import Parameters, Prepared, PreparedStatements, Statement

_SIZES = (1, 8, 64, 512)


class Driver(Protocol):
    """The little that differs between sqlite3 and psycopg."""

    takes_arrays: bool  # a statement may be given whole columns

    def run(self, sql: str, values: Parameters) -> Any:
        """A cursor with fetchone, fetchall and rowcount."""
        ...

    def insert_many(self, sql: str, values: Sequence[Parameters]) -> list[int]:
        """Run an INSERT that gives an id for each; the ids in the same order."""
        ...

    def run_many(self, sql: str, values: Sequence[Parameters]) -> None: ...
    def before_events(self) -> None:
        """Called before events get their ids: from here to the commit nobody else gives any."""
        ...

    def before_search(self) -> None:
        """Called before statements that may have to read a whole table."""
        ...

    def before_grants(self, machine_id: str) -> None:
        """Called before grants of a machine are read and given."""
        ...


class ShapeCache:
    """Ids of committed shapes by key, so that a submit need not look them up."""

    LIMIT = 4096

    def __init__(self) -> None:
        self._lock = Lock()
        self._ids: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ids)

    def get(self, key: str) -> int | None:
        return self._ids.get(key)

    def add(self, found: Mapping[str, int]) -> None:
        with self._lock:
            self._ids.update(found)
            while len(self._ids) > self.LIMIT:
                self._ids.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._ids.clear()


class Session:
    """Runs statements; subclasses know the nouns."""

    def __init__(
        self, driver: Driver, statements: PreparedStatements, shape_cache: ShapeCache
    ) -> None:
        self._driver = driver
        self._statements = statements
        self._shape_cache = shape_cache
        self._new_shapes: dict[str, int] = {}
        self._pending_events: list[StoredEvent] = []
        self.told: list[StoredEvent] = []  # events of this transaction, for after the commit
        self._ended: list[EndedJob] = []
        self._opened: list[Alert] = []

    def finish(self, hooks: Sequence[Callable[[Any, Happened], None]]) -> None:
        """The work is done; what belongs into the same transaction comes now."""
        if hooks and (self._ended or self._opened):
            happened = Happened(tuple(self._ended), tuple(self._opened))
            for hook in hooks:
                hook(self, happened)

    def committed(self) -> None:
        if self._new_shapes:
            self._shape_cache.add(self._new_shapes)

    def _rows(self, statement: Statement, **params: Any) -> list[Any]:
        return self._fetch(self._statements.get(statement), params)

    def _rows_once(self, statement: Statement) -> list[Any]:
        return self._fetch(self._statements.once(statement), {})

    def _fetch(self, prepared: Prepared, params: Mapping[str, Any]) -> list[Any]:
        found = self._driver.run(prepared.sql, prepared.bound(params)).fetchall()
        return [prepared.row(values) for values in found]

    def _rows_by_id(
        self, statement: Callable[[int], Statement], ids: Sequence[int] | Sequence[str]
    ) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(ids), _SIZES[-1]):
            some = ids[start : start + _SIZES[-1]]
            # Few sizes, so that few statements are compiled; the rest is filled with the last id.
            size = next(size for size in _SIZES if size >= len(some))
            params = {f"id_{place}": some[min(place, len(some) - 1)] for place in range(size)}
            found += self._rows(statement(size), **params)
        return found

    def _row(self, statement: Statement, **params: Any) -> Any | None:
        prepared = self._statements.get(statement)
        values = self._driver.run(prepared.sql, prepared.bound(params)).fetchone()
        return None if values is None else prepared.row(values)

    def _run(self, statement: Statement, **params: Any) -> int:
        """How many rows were touched."""
        prepared = self._statements.get(statement)
        count: int = self._driver.run(prepared.sql, prepared.bound(params)).rowcount
        return count

    def _run_many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        prepared = self._statements.get(statement)
        self._driver.run_many(prepared.sql, [prepared.bound(row) for row in rows])

    def _insert_many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        prepared = self._statements.get(statement)
        return self._driver.insert_many(prepared.sql, [prepared.bound(row) for row in rows])

    def _insert(self, statement: Statement, **params: Any) -> int:
        return self._insert_many(statement, [params])[0]
