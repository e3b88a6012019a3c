"""Opens the store that a database URL names."""

from __future__ import annotations

from runyard.domain import errors
from runyard.stores.base import Store


def open_store(url: str, *, create: bool = True) -> Store:
    """`sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://...`.

    Makes or migrates the schema when needed. With create=False a database that is not there is
    NotFound; one of a newer release is always SchemaTooNew and left as it is.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from runyard.stores.sqlite import SqliteStore

        return SqliteStore(rest[1:], create=create)
    if separator and scheme in ("postgresql", "postgres"):
        from runyard.stores.postgres import PostgresStore

        return PostgresStore(url, create=create)
    raise errors.BadSettings(
        name="database_url", why="it must begin with sqlite:/// or postgresql://"
    )
