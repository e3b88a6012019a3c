"""Connections to one SQLite file, and what the store's sessions need of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from sqlalchemy.dialects.sqlite.base import SQLiteCompiler, SQLiteDialect
from sqlalchemy.engine import Dialect

from runyard.stores.prepared import Parameters

_KEPT_READERS = 8


class _Compiler(SQLiteCompiler):
    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:  # noqa: ARG002
        return text


class _HintedDialect(SQLiteDialect):
    """Writes `INDEXED BY` where a statement asks for it: without statistics SQLite takes the
    index on the status where a partial one would do."""

    statement_compiler = _Compiler
    supports_statement_cache = True


def sqlite_dialect() -> Dialect:
    return _HintedDialect(paramstyle="qmark")


def connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode={mode}",
        uri=True,
        isolation_level=None,  # transactions are begun and ended by hand
        check_same_thread=False,
        cached_statements=512,
        timeout=10.0,
    )
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


class SqliteDriver:
    takes_arrays = False

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self.connection = connection

    def run(self, sql: str, values: Parameters) -> Any:
        return self._execute(sql, values)

    def insert_many(self, sql: str, values: Sequence[Parameters]) -> list[int]:
        execute = self._execute
        return [execute(sql, row).lastrowid or 0 for row in values]

    def run_many(self, sql: str, values: Sequence[Parameters]) -> None:
        self.connection.executemany(sql, values)

    def before_events(self) -> None:
        """Nothing to do: there is one writer."""

    def before_search(self) -> None:
        """Nothing to do."""

    def before_grants(self, machine_id: str) -> None:
        """Nothing to do: there is one writer."""


class Readers:
    """Read-only connections; a few are kept open between reads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._free: list[sqlite3.Connection] = []
        self._closed = False

    def take(self) -> sqlite3.Connection:
        try:
            return self._free.pop()
        except IndexError:
            return connect(self._path, read_only=True)

    def give_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.rollback()
        if self._closed or len(self._free) >= _KEPT_READERS:
            connection.close()
        else:
            self._free.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._free:
            self._free.pop().close()
