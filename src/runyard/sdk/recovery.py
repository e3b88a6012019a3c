"""What a client asks of recovery."""

from __future__ import annotations

from typing import Any

from runyard.sdk.asking import BASE, in_path
from runyard.sdk.connection import Connection


class Recovery:
    _connection: Connection

    def analyze_failure(self, job_id: str | int) -> dict[str, Any]:
        """Why its newest attempt failed, with the proof, and what another would do differently.
        NotEnded while it runs."""
        return self._recovery("analyze", job_id)

    def attempt_recovery(self, job_id: str | int, *, dry_run: bool = False) -> dict[str, Any]:
        """Start a failed job again by its plan; with `dry_run` only tell the plan. Conflict where
        no plan helps."""
        return self._recovery("attempt", job_id, "?dry_run=true" if dry_run else "")

    def _recovery(self, what: str, job_id: str | int, query: str = "") -> dict[str, Any]:
        path = f"{BASE}/recovery/{what}/{in_path(job_id)}{query}"
        return dict(self._connection.request("POST", path).json())
