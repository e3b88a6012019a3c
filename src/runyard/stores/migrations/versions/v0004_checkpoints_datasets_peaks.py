"""Checkpoints, datasets and what attempts used."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.TIMESTAMP(timezone=True).with_variant(sa.Text(), "sqlite")
JSON = sa.JSON().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    _make_checkpoints()
    _make_datasets()
    _make_peaks()


def _make_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("job_id", IDENTITY, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("saved_at", MOMENT, nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("why", JSON, nullable=True),
        sa.Column("metrics", JSON, nullable=False),
        sa.Column("reported", sa.Integer(), nullable=False),
        sa.Column("checked_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_checkpoints_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoints"),
        sa.UniqueConstraint("job_id", "path", name="uq_checkpoints_job_id_path"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_checkpoints_job_id", "checkpoints", ["job_id", "step"])


def _make_datasets() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("name", name="uq_datasets_name"),
        sqlite_autoincrement=True,
    )


def _make_peaks() -> None:
    op.create_table(
        "attempt_peaks",
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("memory_mb", sa.Float(), nullable=True),
        sa.Column("gpu_memory_mb", sa.Float(), nullable=True),
        sa.Column("cpu_percent", sa.Float(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.attempt_id"],
            name="fk_attempt_peaks_attempt_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("attempt_id", name="pk_attempt_peaks"),
    )
