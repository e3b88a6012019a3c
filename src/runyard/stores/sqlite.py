"""The store on one SQLite file: one writer thread, readers on connections of their own."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from loguru import logger

from runyard.domain import errors
from runyard.domain.events import StoredEvent
from runyard.stores import schema, sqlite_errors
from runyard.stores.base import Reader, Transaction
from runyard.stores.base_notifications import Happened
from runyard.stores.prepared import PreparedStatements
from runyard.stores.session import ShapeCache
from runyard.stores.sql import SqlReader
from runyard.stores.sqlite_connection import Readers, SqliteDriver, connect, sqlite_dialect
from runyard.stores.sqlite_writer import Request, Writer

T = TypeVar("T")


class SqliteStore:
    shared = False

    def __init__(self, path: str, *, create: bool = True) -> None:
        self._path = os.path.abspath(path)
        self._statements = PreparedStatements(sqlite_dialect())
        self._shape_cache = ShapeCache()
        self._hearers: list[Callable[[Sequence[StoredEvent]], None]] = []
        _bring_up_to_date(self._path, create)
        self._readers = Readers(self._path)
        with _opening(self._path):
            self._writer = Writer(self._path, self._statements, self._shape_cache, self._tell)

    def write(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,  # noqa: ARG002 - one writer excludes all others anyway
    ) -> T:
        if self._writer.is_this_thread():
            raise RuntimeError("the thread that writes cannot wait for a write")
        future: Future[T] = Future()
        self._writer.write_here(Request(work, durable, future))
        return future.result()

    def write_soon(
        self,
        work: Callable[[Transaction], T],
        *,
        durable: bool = True,
        exclusive: bool = False,  # noqa: ARG002 - one writer excludes all others anyway
    ) -> Future[T]:
        future: Future[T] = Future()
        self._writer.put(Request(work, durable, future))
        return future

    @contextmanager
    def read(self) -> Iterator[Reader]:
        try:
            connection = self._readers.take()
        except sqlite3.Error as error:
            raise sqlite_errors.domain_error(error, self._path) from error
        try:
            connection.execute("BEGIN")
            yield SqlReader(SqliteDriver(connection), self._statements, self._shape_cache)
        except sqlite3.Error as error:
            raise sqlite_errors.domain_error(error, self._path) from error
        finally:
            self._readers.give_back(connection)

    def before_commit(self, hook: Callable[[Transaction, Happened], None]) -> None:
        self._writer.hooks.append(hook)

    def subscribe(self, hear: Callable[[Sequence[StoredEvent]], None]) -> None:
        self._hearers.append(hear)

    def _tell(self, told: Sequence[StoredEvent]) -> None:
        for hear in self._hearers:
            try:
                hear(told)
            except Exception:
                logger.exception("a subscriber of the store failed")

    def wake_others(self, topic: str) -> None:
        """There are none."""

    def on_wake(self, hear: Callable[[str], None]) -> None:
        """Nobody else can wake us."""

    def now(self) -> float:
        return time.time()

    def backup(self, path: str) -> None:
        # Written aside and moved, so that a copy that was not finished is never taken for one.
        unfinished = f"{path}.unfinished-{os.getpid()}-{threading.get_ident()}"
        try:
            source = connect(self._path, read_only=True)
            try:
                target = connect(unfinished)
                try:
                    source.backup(target)
                finally:
                    target.close()
            finally:
                source.close()
            os.chmod(unfinished, 0o600)
            os.replace(unfinished, path)
        except sqlite3.Error as error:
            raise sqlite_errors.domain_error(error, path) from error
        except OSError as error:
            raise errors.BadRequest(f"{path} cannot be written: {error.strerror}.") from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)

    def close(self) -> None:
        self._writer.close()
        self._readers.close()


@contextmanager
def _opening(path: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise errors.DataDirUnusable(path=path, why=str(error)) from error


def _bring_up_to_date(path: str, create: bool) -> None:
    if not os.path.exists(path) and not create:
        raise errors.NotFound(f"There is no database at {path}.", path=path)
    with _opening(path):
        connection = connect(path)
        try:
            found = _revision(connection)
            if found is None:
                _make_fresh(connection)
        finally:
            connection.close()
    if found is not None and schema.needs_migration(found):
        schema.migrate_in_child(f"sqlite:///{path}")


def _revision(connection: sqlite3.Connection) -> str | None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise sqlite3.DatabaseError("it is a database of another program")
    row = connection.execute(schema.FIND_REVISION).fetchone()
    return str(row[0]) if row else "none"


def _make_fresh(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    if _revision(connection) is None:
        for statement in schema.fresh_schema(sqlite_dialect()):
            connection.execute(statement)
    connection.execute("COMMIT")
