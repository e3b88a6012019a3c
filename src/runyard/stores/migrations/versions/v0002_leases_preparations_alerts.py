"""Leases, preparations and alerts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.TIMESTAMP(timezone=True).with_variant(sa.Text(), "sqlite")
JSON = sa.JSON().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    _make_leases()
    _make_preparations()
    _make_alerts()


def _make_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("job_id", IDENTITY, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_leases_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", name="pk_leases"),
    )
    op.create_index("ix_leases_expires_at", "leases", ["expires_at"])


def _make_preparations() -> None:
    op.create_table(
        "preparations",
        sa.Column("preparation_id", sa.Text(), nullable=False),
        sa.Column("job_id", IDENTITY, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("tag", sa.BigInteger(), nullable=False),
        sa.Column("stop_seq", sa.Integer(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("outcome", JSON, nullable=True),
        sa.Column("receipt", JSON, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_preparations_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("preparation_id", name="pk_preparations"),
        sa.UniqueConstraint("job_id", "number", name="uq_preparations_job_id_number"),
    )
    _partial_index("ix_preparations_live", "preparations", ["node_id"], "status <> 'ended'")


def _make_alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("params", JSON, nullable=False),
        sa.Column("job_id", IDENTITY, nullable=True),
        sa.Column("attempt_id", sa.Text(), nullable=True),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("opened_at", MOMENT, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("closed_at", MOMENT, nullable=True),
        sa.Column("acknowledged_by", sa.Text(), nullable=True),
        sa.Column("evidence", JSON, nullable=False),
        sa.Column("actions_taken", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_alerts_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alerts_job_id", "alerts", ["job_id", "id"])
    op.create_index("ix_alerts_status", "alerts", ["status", "id"])
    _partial_index("uq_alerts_key_not_closed", "alerts", ["key"], "status <> 'closed'", True)


def _partial_index(
    name: str, table: str, columns: list[str], where: str, unique: bool = False
) -> None:
    predicate = sa.text(where)
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=predicate, postgresql_where=predicate
    )
