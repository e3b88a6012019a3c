"""The reader and the transaction of the port, the same for SQLite and PostgreSQL."""

from __future__ import annotations

from runyard.stores.sql_attempts import AttemptReads, AttemptWrites
from runyard.stores.sql_events import EventReads
from runyard.stores.sql_job_list import JobListReads
from runyard.stores.sql_jobs import JobReads, JobWrites
from runyard.stores.sql_keys import KeyReads, KeyWrites
from runyard.stores.sql_machines import MachineReads, MachineWrites
from runyard.stores.sql_queue import QueueReads, QueueWrites
from runyard.stores.sql_shapes import ShapeReads


class SqlReader(
    JobReads,
    JobListReads,
    EventReads,
    AttemptReads,
    QueueReads,
    ShapeReads,
    MachineReads,
    KeyReads,
):
    """Reads inside one snapshot."""


class SqlTransaction(
    JobWrites, AttemptWrites, QueueWrites, MachineWrites, KeyWrites, JobListReads
):
    """Reads and writes inside one transaction."""
