"""The tables of repair: checkpoints, datasets, what attempts used. A change needs a migration."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from runyard.stores.column_types import Identity, Json, Moment
from runyard.stores.tables import metadata

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("path", Text, nullable=False),
    Column("family", Text, nullable=False),  # huggingface, lightning, torch, safetensors ...
    Column("step", BigInteger),
    Column("size_bytes", BigInteger, nullable=False),
    Column("saved_at", Moment, nullable=False),
    Column("verdict", Text, nullable=False),  # unknown, good, bad, gone
    Column("why", Json),  # code and parameters of a bad one
    Column("metrics", Json, nullable=False),
    Column("reported", Integer, nullable=False),  # 1: told by the program, 0: found by pattern
    Column("checked_at", Moment),
    UniqueConstraint("job_id", "path"),
    Index("ix_checkpoints_job_id", "job_id", "step"),
    sqlite_autoincrement=True,
)

datasets = Table(
    "datasets",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("uri", Text, nullable=False),
    Column("hash", Text),
    Column("created_by", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

# The most an attempt used, for the next submit of the same job.
attempt_peaks = Table(
    "attempt_peaks",
    metadata,
    Column(
        "attempt_id",
        Text,
        ForeignKey("attempts.attempt_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("memory_mb", Float),
    Column("gpu_memory_mb", Float),
    Column("cpu_percent", Float),
    Column("seconds", Float),
)
