"""Metrics, alert rules and notifications."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.TIMESTAMP(timezone=True).with_variant(sa.Text(), "sqlite")
JSON = sa.JSON().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    _make_metrics()
    _make_rules()
    _make_notifications()


def _make_metrics() -> None:
    op.create_table(
        "metric_keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_metric_keys"),
        sa.UniqueConstraint("name", name="uq_metric_keys_name"),
    )
    op.create_table(
        "metric_points",
        sa.Column("job_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("key_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_metric_points_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(
            "job_id", "key_id", "attempt", "step", "at", name="pk_metric_points"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "metric_rollups",
        sa.Column("job_id", IDENTITY, autoincrement=False, nullable=False),
        sa.Column("key_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("bucket", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("first_step", sa.BigInteger(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.Float(), nullable=False),
        sa.Column("last_at", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("low_step", sa.BigInteger(), nullable=False),
        sa.Column("low_at", sa.Float(), nullable=False),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("high_step", sa.BigInteger(), nullable=False),
        sa.Column("high_at", sa.Float(), nullable=False),
        sa.Column("nan_step", sa.BigInteger(), nullable=True),
        sa.Column("nan_at", sa.Float(), nullable=True),
        sa.Column("total", sa.Float(), nullable=False),
        sa.Column("finite", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_metric_rollups_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(
            "job_id", "key_id", "attempt", "level", "bucket", name="pk_metric_rollups"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "node_points",
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("node_id", "key_id", "at", name="pk_node_points"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_node_points_at", "node_points", ["at"])


def _make_rules() -> None:
    op.create_table(
        "alert_rules",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("expression", sa.Text(), nullable=False),
        sa.Column("for_s", sa.Float(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("actions", JSON, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("broken", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_rules"),
        sa.UniqueConstraint("name", name="uq_alert_rules_name"),
        sqlite_autoincrement=True,
    )


def _make_notifications() -> None:
    op.create_table(
        "notification_targets",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("events", JSON, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notification_targets"),
        sa.UniqueConstraint("name", name="uq_notification_targets_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "outbox",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("job_id", IDENTITY, nullable=True),
        sa.Column("target", JSON, nullable=False),
        sa.Column("body", JSON, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("sent_at", MOMENT, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_outbox_job_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("delivery_id", name="uq_outbox_delivery_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_due", "outbox", ["status", "due_at"])
