"""The tables of watching: metrics, alerts, rules, notifications. A change needs a migration."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

from runyard.stores.column_types import Identity, Json, Moment
from runyard.stores.tables import metadata as metadata

alerts = Table(
    "alerts",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("key", Text, nullable=False),  # the same trouble has the same key: one open alert each
    Column("level", Text, nullable=False),  # warning, error, critical
    Column("code", Text, nullable=False),
    Column("params", Json, nullable=False),
    Column("job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE")),
    Column("attempt_id", Text),
    Column("node_id", Text),
    Column("status", Text, nullable=False),  # open, acknowledged, closed
    Column("times", Integer, nullable=False),  # how often it was found while open
    Column("opened_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),  # when it was last found
    Column("closed_at", Moment),
    Column("acknowledged_by", Text),
    Column("evidence", Json, nullable=False),
    Column("actions_taken", Json, nullable=False),
    Index("ix_alerts_job_id", "job_id", "id"),
    Index("ix_alerts_status", "status", "id"),
    Index(
        "uq_alerts_key_not_closed",
        "key",
        unique=True,
        sqlite_where=text("status <> 'closed'"),
        postgresql_where=text("status <> 'closed'"),
    ),
    sqlite_autoincrement=True,
)

# Names of metrics, once each; points hold only the number.
metric_keys = Table(
    "metric_keys",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

# What training reported or its log told. `step` is -1 where a value belongs to a time only. NaN is
# stored as NULL, because SQLite has no NaN; infinities are stored as they are.
metric_points = Table(
    "metric_points",
    metadata,
    Column(
        "job_id",
        Identity,
        ForeignKey("training_jobs.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("key_id", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float, primary_key=True, autoincrement=False),  # epoch seconds
    Column("value", Float),
    sqlite_with_rowid=False,
)

# The same, summed up: one row per so many points in a row, so that a long run opens at once.
metric_rollups = Table(
    "metric_rollups",
    metadata,
    Column(
        "job_id",
        Identity,
        ForeignKey("training_jobs.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("key_id", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("level", Integer, primary_key=True, autoincrement=False),  # points per row at most
    Column("bucket", BigInteger, primary_key=True, autoincrement=False),
    Column("points", Integer, nullable=False),
    Column("first_step", BigInteger, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("first_at", Float, nullable=False),
    Column("last_at", Float, nullable=False),
    Column("low", Float),  # NULL when all are NaN
    Column("low_step", BigInteger, nullable=False),
    Column("low_at", Float, nullable=False),
    Column("high", Float),
    Column("high_step", BigInteger, nullable=False),
    Column("high_at", Float, nullable=False),
    Column("nan_step", BigInteger),  # of the first NaN
    Column("nan_at", Float),
    sqlite_with_rowid=False,
)

# What a machine measured of itself.
node_points = Table(
    "node_points",
    metadata,
    Column("node_id", Text, primary_key=True),
    Column("key_id", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, primary_key=True, autoincrement=False),
    Column("value", Float),
    Index("ix_node_points_at", "at"),
    sqlite_with_rowid=False,
)

alert_rules = Table(
    "alert_rules",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("expression", Text, nullable=False),
    Column("for_s", Float, nullable=False),
    Column("level", Text, nullable=False),
    Column("actions", Json, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("broken", Text),  # why it cannot be evaluated
    Column("created_by", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

notification_targets = Table(
    "notification_targets",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),  # webhook, apprise, feishu
    Column("url", Text, nullable=False),
    Column("secret", Text),
    Column("events", Json, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

# What has to be sent; a row is written with what it tells of, and stays for a while when sent.
outbox = Table(
    "outbox",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("delivery_id", Text, nullable=False, unique=True),  # the same for every repeat
    Column("event", Text, nullable=False),  # completed, failed, cancelled, repaired, alert, test
    Column("job_id", Identity, ForeignKey("training_jobs.id", ondelete="SET NULL")),
    Column("target", Json, nullable=False),
    Column("body", Json, nullable=False),
    Column("status", Text, nullable=False),  # waiting, sending, sent, given_up
    Column("tries", Integer, nullable=False),
    Column("due_at", Moment, nullable=False),
    Column("claimed_by", Text),  # the server that is sending it
    Column("created_at", Moment, nullable=False),
    Column("sent_at", Moment),
    Column("last_error", Text),
    Index("ix_outbox_due", "status", "due_at"),
    sqlite_autoincrement=True,
)
