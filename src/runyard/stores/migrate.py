"""`python -m runyard.stores.migrate URL`: bring a database to the newest schema.

A program of its own, because alembic is large and a server needs it at most once. `-` reads the
URL from standard input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool


def migrate(url: str, revision: str = "head") -> None:
    engine = create_engine(_with_driver(url), poolclass=NullPool)
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), revision)


def alembic_config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _with_driver(url: str) -> str:
    parsed = make_url(url)
    if parsed.get_backend_name() in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)


if __name__ == "__main__":
    migrate(sys.stdin.read().strip() if sys.argv[1] == "-" else sys.argv[1])
