"""The part of the store port that keeps who is told, and what has to be sent to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from runyard.domain.monitoring.alert import Alert
from runyard.domain.notifications import (
    Delivery,
    DeliveryFilter,
    DeliveryPage,
    DeliveryStatus,
    NewDelivery,
    NewWorkspaceTarget,
    WorkspaceTarget,
)
from runyard.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that a move of this transaction has ended."""

    job_id: int
    notifies: bool  # it has targets of its own


@dataclass(frozen=True, slots=True)
class Happened:
    """What people may have to be told of one transaction."""

    ended: tuple[EndedJob, ...]
    opened: tuple[Alert, ...]  # alerts that were not open before


class NotificationReader(Protocol):
    def notification_targets(self) -> list[WorkspaceTarget]:
        """By name."""
        ...

    def notification_target(self, ref: int | str) -> WorkspaceTarget | None:
        """By its id or its name."""
        ...

    def delivery(self, delivery_id: str) -> Delivery | None: ...
    def deliveries(
        self, chosen: DeliveryFilter, *, limit: int = 50, cursor: str | None = None
    ) -> DeliveryPage: ...
    def due_deliveries(
        self, now: float, limit: int, after: Delivery | None = None
    ) -> list[Delivery]:
        """Those to be sent by now, longest due first: waiting ones, and those whose claim is
        over. `after` is the last one of the page before."""
        ...

    def next_delivery_due(self) -> float | None: ...
    def alert_told_since(self, alert: Alert, since: float) -> bool:
        """Whether another alert of its key was opened since then and noted as told."""
        ...


class NotificationTransaction(NotificationReader, Protocol):
    def insert_notification_target(
        self, target: NewWorkspaceTarget, by: str, at: float
    ) -> WorkspaceTarget:
        """Its name must be free: look in the same transaction."""
        ...

    def update_notification_target(self, target_id: int, target: NewWorkspaceTarget) -> bool: ...
    def delete_notification_target(self, target_id: int) -> bool: ...
    def insert_deliveries(self, deliveries: Sequence[NewDelivery]) -> None:
        """Waiting, due at once."""
        ...

    def claim_delivery(self, found: Delivery, by: str, until: float) -> bool:
        """Begin a try; False when somebody else did since `found` was read."""
        ...

    def finish_delivery(
        self,
        claimed: Delivery,
        status: DeliveryStatus,
        at: float,
        *,
        due_at: float | None = None,
        error: Reason | None = None,
    ) -> bool:
        """How the try ended that `claimed` (with its `claimed_by` and `tries`) began; False when
        the claim was over and somebody else has it."""
        ...

    def release_deliveries(self, claimed_by: str, now: float) -> int:
        """What this server had claimed before it restarted is due again."""
        ...

    def forget_deliveries(self, before: float) -> int:
        """Those sent or given up that were written before; how many."""
        ...

    def note_alert_told(self, alert_id: int, at: float) -> None:
        """As one of the actions taken."""
        ...
