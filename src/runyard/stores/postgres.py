"""The store on PostgreSQL, which several servers may share."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg

from runyard.domain import errors
from runyard.domain.events import StoredEvent
from runyard.stores import postgres_errors, postgres_schema
from runyard.stores.base import Reader, Transaction
from runyard.stores.base_notifications import Happened
from runyard.stores.postgres_connection import (
    EXCLUSIVE_LOCK,
    LOCKS,
    Connection,
    Connections,
    PostgresDriver,
    postgres_dialect,
)
from runyard.stores.postgres_listener import EVENTS_CHANNEL, WAKE_CHANNEL, DatabaseClock, Listener
from runyard.stores.prepared import PreparedStatements
from runyard.stores.session import ShapeCache
from runyard.stores.sql import SqlReader, SqlTransaction

T = TypeVar("T")

_TRIES = 6
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class _LostBeforeCommit(Exception):
    """The connection broke while it was certain that nothing had been committed."""


class PostgresStore:
    shared = True

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._statements = PreparedStatements(postgres_dialect())
        self._shape_cache = ShapeCache()
        self._name = secrets.token_hex(8)
        self._clock = DatabaseClock()
        self._hooks: list[Callable[[Transaction, Happened], None]] = []
        try:
            postgres_schema.bring_up_to_date(url, create)
            self._connections = Connections(url)
            self._listener = Listener(url, self._name, self._statements, self._clock)
        except psycopg.Error as error:
            told = str(error).strip().split("\n")[0]
            raise errors.StartRefused(f"The database cannot be used: {told}") from error
        # One thread, so that writes nobody waits for happen in the order they were given.
        self._later = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._closed = False

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,
    ) -> T:
        begin = _begin(durable, exclusive)
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._write_once(work, begin)
            except _LostBeforeCommit as lost:
                if not tries_left:
                    raise errors.Unavailable("The database went away.") from lost
            except UnicodeEncodeError as error:
                raise errors.BadRequest("Text that is not valid Unicode.") from error
            except psycopg.Error as error:
                if not (tries_left and postgres_errors.worth_retrying(error)):
                    raise postgres_errors.domain_error(error) from error
                self._shape_cache.clear()
                time.sleep(random.uniform(0, 0.01) * (_TRIES - tries_left))
        raise AssertionError("unreachable")

    def _write_once(self, work: Callable[[Transaction], T], begin: str) -> T:
        with self._connections.begun(begin) as connection:
            tx = SqlTransaction(PostgresDriver(connection), self._statements, self._shape_cache)
            try:
                value = work(tx)
                tx.finish(self._hooks)
                tx.flush_events()
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise _LostBeforeCommit from error
                raise
            _commit(connection, tx.told)
            tx.committed()
            return value

    def write_soon(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,
    ) -> Future[T]:
        if self._closed:
            raise errors.ShuttingDown()
        return self._later.submit(self.write, work, durable=durable, exclusive=exclusive)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        try:
            with self._connections.begun(_SNAPSHOT) as connection:
                yield SqlReader(PostgresDriver(connection), self._statements, self._shape_cache)
        except psycopg.Error as error:
            raise postgres_errors.domain_error(error) from error

    def before_commit(self, hook: Callable[[Transaction, Happened], None]) -> None:
        self._hooks.append(hook)

    def subscribe(self, hear: Callable[[Sequence[StoredEvent]], None]) -> None:
        self._listener.hearers.append(hear)

    def wake_others(self, topic: str) -> None:
        # Only a hint: whoever misses it looks again by itself.
        with suppress(psycopg.Error, errors.Unavailable), self._connections.begun("BEGIN") as it:
            it.execute("SELECT pg_notify(%s, %s)", (WAKE_CHANNEL, f"{self._name} {topic}"))
            it.execute("COMMIT")

    def on_wake(self, hear: Callable[[str], None]) -> None:
        self._listener.wakers.append(hear)

    def now(self) -> float:
        return self._clock.now()

    def backup(self, path: str) -> None:  # noqa: ARG002
        raise errors.BadRequest(
            "A PostgreSQL database is backed up with its own tool: pg_dump --format=custom."
        )

    def close(self) -> None:
        self._closed = True
        self._later.shutdown(wait=True)
        self._listener.close()
        self._connections.close()


def _begin(durable: bool, exclusive: bool) -> str:
    """One round trip for all that comes before the work."""
    words = ["BEGIN"]
    if not durable:
        words.append("SET LOCAL synchronous_commit = off")
    if exclusive:
        words.append(f"SELECT pg_advisory_xact_lock({LOCKS}, {EXCLUSIVE_LOCK})")
    return "; ".join(words)


def _commit(connection: Connection, told: Sequence[StoredEvent]) -> None:
    words: Any = "COMMIT"
    if told:
        words = f"NOTIFY {EVENTS_CHANNEL}, '{told[-1].id}'; COMMIT"
    connection.execute(words)
