"""Brings a database to the schema this release knows, or refuses.

A fresh database is made from the tables directly; an older one is migrated by alembic in a child
process, so that a server never carries alembic in its memory.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from runyard.domain import errors
from runyard.stores.all_tables import metadata

KNOWN_REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
)  # oldest first; the last is what this release writes
HEAD = KNOWN_REVISIONS[-1]

FIND_REVISION = "SELECT version_num FROM alembic_version"


def fresh_schema(dialect: Dialect) -> list[str]:
    """The statements that make an empty database one of this release."""
    statements: list[str] = []
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            statements.append(str(CreateIndex(index).compile(dialect=dialect)))
    statements += [
        "INSERT INTO customers (name) VALUES ('default')",
        "INSERT INTO workspaces (customer_id, name) VALUES (1, 'default')",
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
        " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
        f"INSERT INTO alembic_version (version_num) VALUES ('{HEAD}')",
    ]
    return statements


def needs_migration(found: str) -> bool:
    """SchemaTooNew for a revision of a release this one knows nothing of."""
    if found not in KNOWN_REVISIONS:
        raise errors.SchemaTooNew(found=found, known=HEAD)
    return found != HEAD


def migrate_in_child(url: str) -> None:
    # The URL may hold a password, which must not be seen in the list of processes.
    done: Any = subprocess.run(
        [sys.executable, "-m", "runyard.stores.migrate", "-"],
        input=url,
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise errors.StartRefused(
            f"The database could not be brought to schema {HEAD}: {done.stderr.strip()[-2000:]}"
        )
