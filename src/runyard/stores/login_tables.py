"""The table of people who are logged in with a browser. A change needs a migration."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Table, Text

from runyard.stores.column_types import Identity, Moment
from runyard.stores.tables import metadata

login_sessions = Table(
    "login_sessions",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),  # the secret itself is only in the cookie
    Column(
        "key_id",
        Identity,
        ForeignKey("api_keys.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("created_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False, index=True),
    sqlite_autoincrement=True,
)
