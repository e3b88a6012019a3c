"""What a client asks for a fire drill."""

from __future__ import annotations

from typing import Any

from runyard.sdk.asking import BASE, job_path
from runyard.sdk.connection import Connection


class Drills:
    _connection: Connection

    def start_drill(self, job_id: str | int, fault: str) -> dict[str, Any]:
        """A throwaway clone of the job, as a job; `strike_drill` then does the fault to it."""
        path = f"{BASE}{job_path(job_id)}/drill"
        return dict(self._connection.request("POST", path, body={"fault": fault}).json())

    def strike_drill(self, job_id: str | int) -> dict[str, Any]:
        """Do the fault to the clone; DrillTooEarly until it has what that needs."""
        path = f"{BASE}{job_path(job_id)}/drill/fault"
        return dict(self._connection.request("POST", path).json())
