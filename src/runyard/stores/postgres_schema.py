"""Makes or migrates the tables of PostgreSQL, also when several servers start at once."""

from __future__ import annotations

from typing import Any

from runyard.domain import errors
from runyard.stores import schema
from runyard.stores.postgres_connection import (
    LOCKS,
    SCHEMA_LOCK,
    Connection,
    connect,
    postgres_dialect,
)


def bring_up_to_date(url: str, create: bool) -> None:
    with connect(url, "runyard-schema") as connection:
        # Another server may migrate for minutes.
        connection.execute("SET lock_timeout = 0")
        connection.execute("SELECT pg_advisory_lock(%s, %s)", (LOCKS, SCHEMA_LOCK))
        found = _revision(connection)
        if found is None:
            if not create:
                raise errors.NotFound("The database has no tables of Runyard.")
            _make_fresh(connection)
        elif schema.needs_migration(found):
            schema.migrate_in_child(url)


def _revision(connection: Connection) -> str | None:
    row = connection.execute(
        "SELECT to_regclass('alembic_version'), to_regclass('training_jobs')"
    ).fetchone()
    assert row is not None
    if row == (None, None):
        return None
    if None in row:
        raise errors.BadSettings(
            name="database_url", why="the database is used by another program"
        )
    found = connection.execute(schema.FIND_REVISION).fetchone()
    return str(found[0]) if found else "none"


def _make_fresh(connection: Connection) -> None:
    with connection.transaction():
        for statement in schema.fresh_schema(postgres_dialect()):
            words: Any = statement
            connection.execute(words)
