"""What a client asks of the server as a whole: queue, nodes, GPUs, alerts, keys, health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runyard.sdk.asking import BASE, given, in_path, rows
from runyard.sdk.connection import Connection

if TYPE_CHECKING:
    from runyard.sdk.watching import Watch


class Machines:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def queue_status(self, *, limit: int | None = None) -> dict[str, Any]:
        return dict(self._ask("/queue/status", given(limit=limit)))

    def start_queue(self) -> None:
        self._do("/system/start-queue")

    def stop_queue(self) -> None:
        """Start no further jobs; those that run are left alone. Survives a restart."""
        self._do("/system/stop-queue")

    def monitor_status(self) -> dict[str, Any]:
        """Nodes and GPUs as last measured, jobs by status, and how those that run are doing."""
        return dict(self._ask("/monitor/status"))

    def monitor_job(self, job_id: str | int) -> dict[str, Any]:
        """Everything known of one job now."""
        return dict(self._ask(f"/monitor/job/{in_path(job_id)}"))

    def monitor_history(
        self,
        *,
        job: str | int | None = None,
        node: str | None = None,
        keys: Sequence[str] = (),
        since: float | str | None = None,
        until: float | str | None = None,
        points: int | None = None,
    ) -> dict[str, Any]:
        """Series of a job or of a node (the server's own by default): name -> steps, times,
        values, sampled. At most `points` of each."""
        asked = given(job=job, node=node, keys=list(keys), since=since, until=until, points=points)
        return dict(self._ask("/monitor/history", asked)["series"])

    def login_link(self) -> dict[str, Any]:
        """A token that logs one browser in as this key: token, path, expires_at."""
        return self._do("/session/link") or {}

    def who_am_i(self) -> dict[str, Any]:
        """The name, role and scopes of this key."""
        return dict(self._ask("/session"))

    def nodes(self) -> list[dict[str, Any]]:
        return rows(self._ask("/nodes"))

    def drain(self, node: str) -> dict[str, Any]:
        """Start nothing more on this node."""
        return self._do(f"/nodes/{in_path(node)}/drain") or {}

    def undrain(self, node: str) -> dict[str, Any]:
        return self._do(f"/nodes/{in_path(node)}/undrain") or {}

    def gpus(self) -> list[dict[str, Any]]:
        return rows(self._ask("/gpus"))

    def fence(self, gpu: str | int, *, reason: str = "") -> dict[str, Any]:
        """Give this GPU (index or uuid) to no further job."""
        return self._do(f"/gpus/{in_path(gpu)}/fence", {"reason": reason}) or {}

    def unfence(self, gpu: str | int) -> dict[str, Any]:
        return self._do(f"/gpus/{in_path(gpu)}/unfence") or {}

    def alerts(
        self,
        *,
        status: str | Sequence[str] | None = None,
        level: str | Sequence[str] | None = None,
        job: str | int | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Newest first, closed ones too unless `status` (open, acknowledged, closed) is given."""
        return rows(self._ask("/alerts", given(status=status, level=level, job=job, limit=limit)))

    def acknowledge_alert(self, alert_id: int) -> dict[str, Any]:
        """Say that it was seen."""
        return dict(self._do(f"/alerts/{alert_id}/acknowledge"))

    def close_alert(self, alert_id: int) -> dict[str, Any]:
        return dict(self._do(f"/alerts/{alert_id}/close"))

    def watch(self, *topics: str, last_id: int | None = None, patience_s: float = 120.0) -> Watch:
        """Messages of the live socket as they come, over lost connections: for `for` and `with`.
        Topics: jobs, job:ID, metrics:ID, log:ID:OFFSET, system, alerts."""
        from runyard.sdk.watching import Watch

        path = f"{BASE}/monitor/ws"
        return Watch(self._connection, path, topics, last_id=last_id, patience_s=patience_s)

    def keys(self) -> list[dict[str, Any]]:
        return rows(self._ask("/keys"))

    def create_key(
        self, name: str, *, role: str = "user", expires_at: float | None = None
    ) -> dict[str, Any]:
        """The key with its secret, which is never shown again."""
        made: dict[str, Any] = self._do(
            "/keys", given(name=name, role=role, expires_at=expires_at)
        )
        return made

    def revoke_key(self, key_id: int | str) -> None:
        self._connection.request("DELETE", f"{BASE}/keys/{in_path(key_id)}")

    def health(self, *, timeout: float | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = self._connection.request(
            "GET", "/readyz", timeout_s=timeout
        ).json()
        return answer

    def _ask(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return self._connection.request("GET", BASE + path, query=query).json()

    def _do(self, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        return self._connection.request("POST", BASE + path, body=body, query=query).json()
