"""The parts of the store port that keep what watching needs, in one."""

from __future__ import annotations

from typing import Protocol

from runyard.stores.base_alerts import AlertReader, AlertTransaction
from runyard.stores.base_metrics import MetricReader, MetricTransaction
from runyard.stores.base_notifications import NotificationReader, NotificationTransaction
from runyard.stores.base_rules import RuleReader, RuleTransaction


class WatchReader(AlertReader, MetricReader, RuleReader, NotificationReader, Protocol):
    """Reads."""


class WatchTransaction(
    AlertTransaction, MetricTransaction, RuleTransaction, NotificationTransaction, Protocol
):
    """Reads and writes."""
