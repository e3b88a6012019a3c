"""Connections to one PostgreSQL database, and what the store's sessions need of them."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.types.string import TextLoader
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import Dialect

from runyard.domain import errors
from runyard.stores.prepared import Parameters

Connection = psycopg.Connection[tuple[Any, ...]]

# Advisory locks of this database that are ours: (this number, which one).
LOCKS = 0x52594152
SCHEMA_LOCK, EXCLUSIVE_LOCK, EVENTS_LOCK = 1, 2, 3
_GRANT_LOCKS = LOCKS + 1

_MOST = 16
_WAIT_S = 10.0
_PLANS_OF_SEARCHES = (
    "enable_seqscan",
    "enable_bitmapscan",
    "enable_hashjoin",
    "enable_mergejoin",
    "enable_sort",
    "enable_incremental_sort",
)
# A server that hangs inside a transaction must not stop the others for long, and one whose
# machine is gone must be noticed.
_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": "-c timezone=UTC -c idle_in_transaction_session_timeout=30000"
    " -c lock_timeout=30000 -c default_transaction_isolation=read\\ committed"
    # Plans are kept per connection, and those made while a table is small would read it whole
    # and sort it long after it has grown. All but searches have an index to follow.
    + "".join(f" -c {name}=off" for name in (*_PLANS_OF_SEARCHES, "jit")),
}


def postgres_dialect() -> Dialect:
    return PGDialect_psycopg()  # type: ignore[no-untyped-call]


def connect(url: str, name: str = "runyard") -> Connection:
    connection = psycopg.connect(url, autocommit=True, application_name=name, **_OPTIONS)
    # JSON arrives as text, so that one decoder serves both databases.
    connection.adapters.register_loader("json", TextLoader)
    return connection


class PostgresDriver:
    takes_arrays = True

    def __init__(self, connection: Connection) -> None:
        self._connection: Any = connection  # its methods want literal strings

    def run(self, sql: str, values: Parameters) -> Any:
        return self._connection.execute(sql, values)

    def insert_many(self, sql: str, values: Sequence[Parameters]) -> list[int]:
        if len(values) == 1:
            return [self._connection.execute(sql, values[0]).fetchone()[0]]
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, values, returning=True)
            return [result.fetchone()[0] for result in cursor.results()] if values else []

    def run_many(self, sql: str, values: Sequence[Parameters]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, values)

    def before_events(self) -> None:
        # So that ids are given in the order of the commits: whoever read up to an id has missed
        # nothing below it.
        self._lock(LOCKS, EVENTS_LOCK)

    def before_grants(self, machine_id: str) -> None:
        self._lock(_GRANT_LOCKS, zlib.crc32(machine_id.encode()) >> 1)

    def before_search(self) -> None:
        settings = "; ".join(f"SET LOCAL {name} = on" for name in _PLANS_OF_SEARCHES)
        self._connection.execute(settings)

    def _lock(self, group: int, which: int) -> None:
        self._connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (group, which))


class Connections:
    """A few connections, made when needed and used again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._slots = threading.BoundedSemaphore(_MOST)
        self._free: list[Connection] = []
        self._closed = False

    @contextmanager
    def begun(self, begin: str) -> Iterator[Connection]:
        """A connection on which `begin` was run; rolled back at the end unless committed."""
        if self._closed:
            raise errors.ShuttingDown()
        if not self._slots.acquire(timeout=_WAIT_S):
            raise errors.Unavailable("All connections to the database are busy.")
        try:
            connection = self._begin(begin)
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._slots.release()

    def _begin(self, begin: Any) -> Connection:
        while True:
            try:
                connection, used = self._free.pop(), True
            except IndexError:
                connection, used = connect(self._url), False
            try:
                connection.execute(begin)
            except psycopg.Error:
                gone = connection.broken
                connection.close()
                # A connection that waited may have died with the database it was made to.
                if not (used and gone):
                    raise
            else:
                return connection

    def _give_back(self, connection: Connection) -> None:
        try:
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        if self._closed:
            connection.close()
        elif not connection.closed:
            self._free.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._free:
            self._free.pop().close()
