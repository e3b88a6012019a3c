"""The store contract: every promise of stores/base.py as a test.

A store's test file inherits `StoreContract` and gives a fixture `store` with an open, empty store.
"""

from __future__ import annotations

from runyard.testing.store_contract_alerts import AlertContract
from runyard.testing.store_contract_attempts import AttemptContract
from runyard.testing.store_contract_events import EventContract
from runyard.testing.store_contract_jobs import JobContract
from runyard.testing.store_contract_leases import LeaseContract
from runyard.testing.store_contract_lists import ListContract
from runyard.testing.store_contract_logins import LoginContract
from runyard.testing.store_contract_machines import MachineContract
from runyard.testing.store_contract_metrics import MetricContract
from runyard.testing.store_contract_notifications import NotificationContract
from runyard.testing.store_contract_preparations import PreparationContract
from runyard.testing.store_contract_queue import QueueContract
from runyard.testing.store_contract_repair import RepairContract
from runyard.testing.store_contract_rules import RuleContract
from runyard.testing.store_contract_slices import SliceContract
from runyard.testing.store_contract_writes import WriteContract


class StoreContract(
    WriteContract,
    JobContract,
    ListContract,
    EventContract,
    QueueContract,
    AttemptContract,
    MachineContract,
    LeaseContract,
    AlertContract,
    MetricContract,
    RuleContract,
    NotificationContract,
    RepairContract,
    LoginContract,
    SliceContract,
    PreparationContract,
):
    """All of it."""
