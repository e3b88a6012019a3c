"""Fresh SQLite stores, and plain connections to look behind them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from runyard.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "runyard.db")


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    yield store
    store.close()


@pytest.fixture
def query(path):
    """Runs one statement on the file, past the store."""

    def run(sql, *values):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            return connection.execute(sql, values).fetchall()

    return run
