"""What a client asks about alert rules and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.sdk.asking import BASE, in_path, job_path
from runyard.sdk.connection import Connection


class AlertRules:
    _connection: Connection

    def rules(self) -> list[dict[str, Any]]:
        """By name."""
        return list(self._connection.request("GET", f"{BASE}/alert-rules").json())

    def create_rule(
        self,
        name: str,
        expression: str,
        *,
        for_: str | float | None = None,
        level: str = "warning",
        actions: Sequence[str] = (),
        enabled: bool = True,
    ) -> dict[str, Any]:
        """`create_rule("high", "loss > 10 for 5m", actions=["cancel"])`"""
        body = {
            "name": name,
            "expression": expression,
            "for": for_,
            "level": level,
            "actions": list(actions),
            "enabled": enabled,
        }
        return dict(self._connection.request("POST", f"{BASE}/alert-rules", body=body).json())

    def change_rule(self, rule: str | int, **changes: Any) -> dict[str, Any]:
        """Any of name, expression, for_, level, actions, enabled; the rest stays."""
        if "for_" in changes:
            changes["for"] = changes.pop("for_")
        return dict(self._connection.request("PUT", _path(rule), body=changes).json())

    def delete_rule(self, rule: str | int) -> None:
        self._connection.request("DELETE", _path(rule))

    def preview_rule(
        self,
        expression: str,
        *,
        for_: str | float | None = None,
        job: str | int | None = None,
        since: str | float | None = None,
    ) -> dict[str, Any]:
        """When it would have fired, on the history of one job or of those that ran since then."""
        body = {"expression": expression, "for": for_, "job": job, "since": since}
        asked = {name: value for name, value in body.items() if value is not None}
        return dict(
            self._connection.request("POST", f"{BASE}/alert-rules/preview", body=asked).json()
        )

    def evidence(self, job: str | int, attempt: int) -> list[dict[str, Any]]:
        """What was saved with an attempt when something was wrong with it: name, size, at."""
        path = f"{BASE}{job_path(job)}/attempts/{attempt}/evidence"
        return list(self._connection.request("GET", path).json())


def _path(rule: str | int) -> str:
    return f"{BASE}/alert-rules/{in_path(rule)}"
