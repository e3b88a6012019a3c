"""What a client asks about notifications: who is told, whether it works, what was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.sdk.asking import BASE
from runyard.sdk.connection import Connection

_PATH = f"{BASE}/notifications"
_TEST_S = 30.0  # a test is answered when it has been tried


class Notifications:
    _connection: Connection

    def notification_targets(self) -> list[dict[str, Any]]:
        """Those told of everybody's jobs; for admins."""
        return list(self._connection.request("GET", _PATH).json())

    def add_notification_target(
        self,
        name: str,
        url: str,
        *,
        type: str = "webhook",
        secret: str | None = None,
        events: Sequence[str] | None = None,
        enabled: bool = True,
    ) -> dict[str, Any]:
        """`type` is webhook, apprise or feishu; `events` some of completed, failed, cancelled,
        repaired, alert (the ends by default)."""
        body = _target(type, url, secret, events) | {"name": name, "enabled": enabled}
        return dict(self._connection.request("POST", _PATH, body=body).json())

    def change_notification_target(self, target_id: int, **changes: Any) -> dict[str, Any]:
        """name, type, url, secret, events, enabled; what is left out stays."""
        path = f"{_PATH}/{target_id}"
        return dict(self._connection.request("PUT", path, body=changes).json())

    def remove_notification_target(self, target_id: int) -> None:
        self._connection.request("DELETE", f"{_PATH}/{target_id}")

    def test_notification_target(self, target_id: int) -> dict[str, Any]:
        """Send something and wait; the answer's `status` is sent, or `error` says why not."""
        path = f"{_PATH}/{target_id}/test"
        return dict(self._connection.request("POST", path, timeout_s=_TEST_S).json())

    def test_notification(
        self, url: str, *, type: str = "webhook", secret: str | None = None
    ) -> dict[str, Any]:
        """The same for a target that is not kept."""
        body = _target(type, url, secret, None)
        path = f"{_PATH}/test"
        return dict(self._connection.request("POST", path, body=body, timeout_s=_TEST_S).json())

    def deliveries(
        self,
        *,
        status: str | Sequence[str] | None = None,
        job: str | int | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """What was told or still has to be, newest first; of one's own jobs unless admin."""
        asked = {"status": status, "job": job, "limit": limit}
        query = {name: value for name, value in asked.items() if value is not None}
        path = f"{_PATH}/deliveries"
        return list(self._connection.request("GET", path, query=query).json())


def _target(
    type: str, url: str, secret: str | None, events: Sequence[str] | None
) -> dict[str, Any]:
    body: dict[str, Any] = {"type": type, "url": url}
    if secret:
        body["secret"] = secret
    if events is not None:
        body["events"] = list(events)
    return body
