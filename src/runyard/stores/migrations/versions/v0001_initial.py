"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.TIMESTAMP(timezone=True).with_variant(sa.Text(), "sqlite")
JSON = sa.JSON().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    _make_tenants()
    _make_jobs()
    _make_job_relations()
    _make_attempts()
    _make_events()
    _make_machines()
    _make_keys()
    op.execute("INSERT INTO customers (name) VALUES ('default')")
    op.execute("INSERT INTO workspaces (customer_id, name) VALUES (1, 'default')")


def _make_tenants() -> None:
    op.create_table(
        "customers",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_customers"),
    )
    op.create_table(
        "workspaces",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("customer_id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["customer_id"], ["customers.id"], name="fk_workspaces_customer_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workspaces"),
    )


def _make_jobs() -> None:
    op.create_table(
        "shapes",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("cpu_milli", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("gpu_milli", sa.Integer(), nullable=False),
        sa.Column("gpu_type", sa.Text(), nullable=True),
        sa.Column("port_count", sa.Integer(), nullable=False),
        sa.Column("executor", sa.Text(), nullable=False),
        sa.Column("array_id", sa.Text(), nullable=True),
        sa.Column("array_limit", sa.Integer(), nullable=False),
        sa.Column("wait_code", sa.Text(), nullable=True),
        sa.Column("wait_params", JSON, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_shapes"),
        sa.UniqueConstraint("key", name="uq_shapes_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "training_jobs",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("customer_id", IDENTITY, nullable=False),
        sa.Column("workspace_id", IDENTITY, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("cpu_cores", sa.Float(), nullable=False),
        sa.Column("memory_gb", sa.Float(), nullable=False),
        sa.Column("gpu_count", sa.Float(), nullable=False),
        sa.Column("gpu_type", sa.Text(), nullable=True),
        sa.Column("image", sa.Text(), nullable=True),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("working_dir", sa.Text(), nullable=True),
        sa.Column("env_vars", JSON, nullable=False),
        sa.Column("dataset_ids", JSON, nullable=False),
        sa.Column("output_path", sa.Text(), nullable=True),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("timeout_s", sa.Float(), nullable=True),
        sa.Column("array_id", sa.Text(), nullable=True),
        sa.Column("array_index", sa.Integer(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("reason_code", sa.Text(), nullable=True),
        sa.Column("reason_params", JSON, nullable=True),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("charged", sa.Integer(), nullable=False),
        sa.Column("max_retries", sa.Integer(), nullable=False),
        sa.Column("attempt_number", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Text(), nullable=False),
        sa.Column("shape_id", IDENTITY, nullable=False),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("hold", sa.Boolean(), nullable=False),
        sa.Column("not_before", MOMENT, nullable=True),
        sa.Column("queued_at", MOMENT, nullable=False),
        sa.Column("submitted_at", MOMENT, nullable=False),
        sa.Column("scheduled_at", MOMENT, nullable=True),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("completed_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["customer_id"], ["customers.id"], name="fk_training_jobs_customer_id"
        ),
        sa.ForeignKeyConstraint(["shape_id"], ["shapes.id"], name="fk_training_jobs_shape_id"),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name="fk_training_jobs_workspace_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_training_jobs"),
        sa.UniqueConstraint("uuid", name="uq_training_jobs_uuid"),
        sqlite_autoincrement=True,
    )
    _partial_index(
        "ix_training_jobs_array_id", "training_jobs", ["array_id"], "array_id IS NOT NULL"
    )
    _partial_index(
        "ix_training_jobs_delayed",
        "training_jobs",
        ["not_before"],
        "not_before IS NOT NULL AND NOT ready AND NOT hold AND status IN ('pending', 'retrying')",
    )
    _partial_index(
        "ix_training_jobs_not_ready",
        "training_jobs",
        ["queued_at", "id"],
        "NOT ready AND status IN ('pending', 'retrying')",
    )
    op.create_index("ix_training_jobs_owner", "training_jobs", ["owner", "id"])
    _partial_index(
        "ix_training_jobs_ready_by_priority",
        "training_jobs",
        ["priority", "queued_at", "id"],
        "ready AND status IN ('pending', 'retrying')",
    )
    _partial_index(
        "ix_training_jobs_ready_by_shape",
        "training_jobs",
        ["shape_id", "queued_at", "id"],
        "ready AND status IN ('pending', 'retrying')",
    )
    op.create_index("ix_training_jobs_shape_id", "training_jobs", ["shape_id"])
    op.create_index("ix_training_jobs_submitted_at", "training_jobs", ["submitted_at"])
    op.create_index("ix_training_jobs_status", "training_jobs", ["status", "id"])


def _make_job_relations() -> None:
    op.create_table(
        "job_labels",
        sa.Column("job_id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_job_labels_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "name", name="pk_job_labels"),
    )
    op.create_index("ix_job_labels_name_value", "job_labels", ["name", "value", "job_id"])
    op.create_table(
        "job_dependencies",
        sa.Column("job_id", IDENTITY, nullable=False),
        sa.Column("depends_on_id", IDENTITY, nullable=False),
        sa.Column("condition", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["depends_on_id"],
            ["training_jobs.id"],
            name="fk_job_dependencies_depends_on_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_job_dependencies_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "depends_on_id", name="pk_job_dependencies"),
    )
    op.create_index("ix_job_dependencies_depends_on_id", "job_dependencies", ["depends_on_id"])


def _make_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("job_id", IDENTITY, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("executor", sa.Text(), nullable=False),
        sa.Column("cpu_milli", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("gpu_milli", sa.Integer(), nullable=False),
        sa.Column("gpu_type", sa.Text(), nullable=True),
        sa.Column("port_count", sa.Integer(), nullable=False),
        sa.Column("tag", sa.BigInteger(), nullable=False),
        sa.Column("gpus", JSON, nullable=False),
        sa.Column("ports", JSON, nullable=False),
        sa.Column("params", JSON, nullable=False),
        sa.Column("end", sa.Text(), nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("stop_seq", sa.Integer(), nullable=False),
        sa.Column("plan", JSON, nullable=True),
        sa.Column("diagnosis", JSON, nullable=True),
        sa.Column("receipt", JSON, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_attempts_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", name="pk_attempts"),
        sa.UniqueConstraint("job_id", "number", name="uq_attempts_job_id_number"),
    )
    _partial_index("ix_attempts_live", "attempts", ["node_id"], "status <> 'ended'")
    op.create_table(
        "grants",
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("share", sa.Integer(), nullable=False),
        sa.Column("milli", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["attempts.attempt_id"],
            name="fk_grants_attempt_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("machine_id", "kind", "resource", "share", name="pk_grants"),
    )
    op.create_index("ix_grants_attempt_id", "grants", ["attempt_id"])


def _make_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("job_id", IDENTITY, nullable=True),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.Text(), nullable=True),
        sa.Column("params", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["training_jobs.id"], name="fk_events_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_job_id", "events", ["job_id", "id"])


def _make_machines() -> None:
    op.create_table(
        "nodes",
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("capacity", JSON, nullable=False),
        sa.Column("load", JSON, nullable=True),
        sa.Column("executors", JSON, nullable=False),
        sa.Column("drained", sa.Boolean(), nullable=False),
        sa.Column("heartbeat_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="pk_nodes"),
    )
    op.create_table(
        "fenced_gpus",
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("fenced_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("machine_id", "uuid", name="pk_fenced_gpus"),
    )


def _make_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("local", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("key_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("key_id", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_at", "idempotency_keys", ["at"])
    op.create_table(
        "flags",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_flags"),
    )


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    predicate = sa.text(where)
    op.create_index(name, table, columns, sqlite_where=predicate, postgresql_where=predicate)
