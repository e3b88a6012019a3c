"""The tables of jobs, attempts, machines and keys. A change needs a migration; a test compares."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from runyard.stores.column_types import Identity, Json, Moment

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Spelled exactly like this in the queries too: SQLite uses a partial index only then.
IS_READY = "training_jobs.ready AND training_jobs.status IN ('pending', 'retrying')"
IS_NOT_READY = "NOT training_jobs.ready AND training_jobs.status IN ('pending', 'retrying')"
IS_DELAYED = (
    "training_jobs.not_before IS NOT NULL AND NOT training_jobs.ready AND NOT training_jobs.hold"
    " AND training_jobs.status IN ('pending', 'retrying')"
)
IS_LIVE = "attempts.status <> 'ended'"


def _only(name: str, *columns: str, where: str) -> Index:
    predicate = text(where.replace("training_jobs.", "").replace("attempts.", ""))
    return Index(name, *columns, sqlite_where=predicate, postgresql_where=predicate)


customers = Table(
    "customers",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", Text, nullable=False),
)

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("customer_id", Identity, ForeignKey("customers.id"), nullable=False),
    Column("name", Text, nullable=False),
)

shapes = Table(
    "shapes",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("priority", Text, nullable=False),
    Column("cpu_milli", Integer, nullable=False),
    Column("memory_mb", Integer, nullable=False),
    Column("gpu_milli", Integer, nullable=False),
    Column("gpu_type", Text),
    Column("port_count", Integer, nullable=False),
    Column("executor", Text, nullable=False),
    Column("array_id", Text),
    Column("array_limit", Integer, nullable=False),
    Column("wait_code", Text),
    Column("wait_params", Json),
    Column("gang", Json),  # of distributed jobs: nodes, placement
    sqlite_autoincrement=True,
)

training_jobs = Table(
    "training_jobs",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("uuid", Text, nullable=False, unique=True),
    Column("customer_id", Identity, ForeignKey("customers.id"), nullable=False),
    Column("workspace_id", Identity, ForeignKey("workspaces.id"), nullable=False),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("job_type", Text, nullable=False),
    Column("cpu_cores", Float, nullable=False),
    Column("memory_gb", Float, nullable=False),
    Column("gpu_count", Float, nullable=False),
    Column("gpu_type", Text),
    Column("image", Text),
    Column("command", Text, nullable=False),
    Column("working_dir", Text),
    Column("env_vars", Json, nullable=False),
    Column("dataset_ids", Json, nullable=False),
    Column("output_path", Text),
    Column("spec", Json, nullable=False),  # the fields of the job that have no column
    Column("timeout_s", Float),
    Column("array_id", Text),
    Column("array_index", Integer),
    Column("status", Text, nullable=False),
    Column("stage", Text),
    Column("reason_code", Text),
    Column("reason_params", Json),
    Column("progress", Float, nullable=False),
    Column("retry_count", Integer, nullable=False),
    Column("charged", Integer, nullable=False),
    Column("max_retries", Integer, nullable=False),
    Column("attempt_number", Integer, nullable=False),
    Column("priority", Text, nullable=False),
    Column("shape_id", Identity, ForeignKey("shapes.id"), nullable=False),
    Column("ready", Boolean, nullable=False),
    Column("hold", Boolean, nullable=False),
    Column("not_before", Moment),
    Column("queued_at", Moment, nullable=False),
    Column("submitted_at", Moment, nullable=False),
    Column("scheduled_at", Moment),
    Column("started_at", Moment),
    Column("completed_at", Moment),
    Index("ix_training_jobs_status", "status", "id"),
    Index("ix_training_jobs_shape_id", "shape_id"),
    _only("ix_training_jobs_array_id", "array_id", where="array_id IS NOT NULL"),
    Index("ix_training_jobs_owner", "owner", "id"),
    Index("ix_training_jobs_submitted_at", "submitted_at"),
    _only("ix_training_jobs_completed_at", "completed_at", where="completed_at IS NOT NULL"),
    _only("ix_training_jobs_ready_by_shape", "shape_id", "queued_at", "id", where=IS_READY),
    _only("ix_training_jobs_ready_by_priority", "priority", "queued_at", "id", where=IS_READY),
    _only("ix_training_jobs_not_ready", "queued_at", "id", where=IS_NOT_READY),
    _only("ix_training_jobs_delayed", "not_before", where=IS_DELAYED),
    sqlite_autoincrement=True,
)

job_labels = Table(
    "job_labels",
    metadata,
    Column(
        "job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Index("ix_job_labels_name_value", "name", "value", "job_id"),
)

job_dependencies = Table(
    "job_dependencies",
    metadata,
    Column(
        "job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE"), primary_key=True
    ),
    Column(
        "depends_on_id",
        Identity,
        ForeignKey("training_jobs.id", ondelete="CASCADE"),
        primary_key=True,
        index=True,
    ),
    Column("condition", Text, nullable=False),  # success, end
)

attempts = Table(
    "attempts",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("node_id", Text, nullable=False),
    Column("machine_id", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("executor", Text, nullable=False),
    Column("cpu_milli", Integer, nullable=False),
    Column("memory_mb", Integer, nullable=False),
    Column("gpu_milli", Integer, nullable=False),
    Column("gpu_type", Text),
    Column("port_count", Integer, nullable=False),
    Column("tag", BigInteger, nullable=False),
    Column("gpus", Json, nullable=False),
    Column("ports", Json, nullable=False),
    Column("params", Json, nullable=False),
    Column("end", Text),
    Column("exit_code", BigInteger),
    Column("signal", Integer),
    Column("cause", Text),
    Column("stop_seq", Integer, nullable=False),
    Column("plan", Json),
    Column("diagnosis", Json),
    Column("receipt", Json),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    Column("slices", Json),  # of one that runs on nodes of an executor
    UniqueConstraint("job_id", "number"),
    _only("ix_attempts_live", "node_id", where=IS_LIVE),
)

# A share of a GPU or a port of a machine, held by an attempt. `share` numbers the shares of one
# GPU from 0, so that two servers that take the same one collide.
grants = Table(
    "grants",
    metadata,
    Column("machine_id", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # gpu, port
    Column("resource", Text, primary_key=True),
    Column("share", Integer, primary_key=True),
    Column("milli", Integer, nullable=False),
    Column(
        "attempt_id",
        Text,
        ForeignKey("attempts.attempt_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
)

# A lease that a client holds on its job; gone once the job has ended or the lease was lost.
leases = Table(
    "leases",
    metadata,
    Column(
        "job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("expires_at", Moment, nullable=False, index=True),
)

# Preflight and prefetch of a job, before it holds anything; the id is the job's with `.p1`.
preparations = Table(
    "preparations",
    metadata,
    Column("preparation_id", Text, primary_key=True),
    Column("job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("status", Text, nullable=False),  # as of an attempt
    Column("stage", Text, nullable=False),  # preflight, pull, prefetch
    Column("node_id", Text, nullable=False),
    Column("machine_id", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("tag", BigInteger, nullable=False),
    Column("stop_seq", Integer, nullable=False),
    Column("exit_code", BigInteger),
    Column("signal", Integer),
    Column("cause", Text),
    Column("outcome", Json),  # what it found or fetched, or why it failed
    Column("receipt", Json),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    UniqueConstraint("job_id", "number"),
    _only("ix_preparations_live", "node_id", where="status <> 'ended'"),
)

events = Table(
    "events",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("job_id", Identity, ForeignKey("training_jobs.id", ondelete="CASCADE")),
    Column("code", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Column("actor", Text, nullable=False),
    Column("attempt_id", Text),
    Column("params", Json, nullable=False),
    Index("ix_events_job_id", "job_id", "id"),
    sqlite_autoincrement=True,
)

nodes = Table(
    "nodes",
    metadata,
    Column("node_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("machine_id", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("capacity", Json, nullable=False),
    Column("load", Json),
    Column("executors", Json, nullable=False),
    Column("drained", Boolean, nullable=False),
    Column("heartbeat_at", Moment, nullable=False),
    Column("offer", Json),  # of a node of an executor: kind, address, labels, alive, cluster
)

fenced_gpus = Table(
    "fenced_gpus",
    metadata,
    Column("machine_id", Text, primary_key=True),
    Column("uuid", Text, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("fenced_at", Moment, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("digest", Text, nullable=False, unique=True),
    Column("local", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("last_used_at", Moment),
    Column("expires_at", Moment),
    sqlite_autoincrement=True,
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("key_id", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("at", Moment, nullable=False, index=True),
)

flags = Table(
    "flags",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
