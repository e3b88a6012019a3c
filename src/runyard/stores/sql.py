"""The reader and the transaction of the port, the same for SQLite and PostgreSQL."""

from __future__ import annotations

from runyard.stores.sql_alerts import AlertReads, AlertWrites
from runyard.stores.sql_attempts import AttemptReads, AttemptWrites
from runyard.stores.sql_events import EventReads
from runyard.stores.sql_job_list import JobListReads
from runyard.stores.sql_jobs import JobReads, JobWrites
from runyard.stores.sql_keys import KeyReads, KeyWrites
from runyard.stores.sql_leases import LeaseReads, LeaseWrites
from runyard.stores.sql_logins import LoginReads, LoginWrites
from runyard.stores.sql_machines import MachineReads, MachineWrites
from runyard.stores.sql_metric_reads import MetricReads
from runyard.stores.sql_metrics import MetricWrites
from runyard.stores.sql_notifications import NotificationReads, NotificationWrites
from runyard.stores.sql_preparations import PreparationReads, PreparationWrites
from runyard.stores.sql_queue import QueueReads, QueueWrites
from runyard.stores.sql_repair import RepairReads, RepairWrites
from runyard.stores.sql_rules import RuleReads, RuleWrites
from runyard.stores.sql_shapes import ShapeReads


class SqlReader(
    JobReads,
    JobListReads,
    EventReads,
    AttemptReads,
    PreparationReads,
    QueueReads,
    ShapeReads,
    MachineReads,
    KeyReads,
    LeaseReads,
    AlertReads,
    MetricReads,
    RuleReads,
    NotificationReads,
    RepairReads,
    LoginReads,
):
    """Reads inside one snapshot."""


class SqlTransaction(
    JobWrites,
    AttemptWrites,
    PreparationWrites,
    QueueWrites,
    MachineWrites,
    KeyWrites,
    LeaseWrites,
    AlertWrites,
    MetricWrites,
    RuleWrites,
    NotificationWrites,
    RepairWrites,
    LoginWrites,
    JobListReads,
):
    """Reads and writes inside one transaction."""
