"""A job as a client holds it: the server's last answer, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runyard.sdk.client import Client

ENDED = frozenset({"completed", "failed", "cancelled"})


class Job:
    """Handle of one job. Attributes read the last answer; `refresh()` asks again."""

    def __init__(self, client: Client, data: Mapping[str, Any]) -> None:
        self._client = client
        self.data: dict[str, Any] = dict(data)

    @property
    def id(self) -> str:
        return str(self.data["job_id"])

    @property
    def name(self) -> str:
        return str(self.data.get("name") or "")

    @property
    def status(self) -> str:
        return str(self.data.get("status") or "")

    @property
    def stage(self) -> str | None:
        return self.data.get("stage")

    @property
    def progress(self) -> float:
        return float(self.data.get("progress") or 0.0)

    @property
    def reason(self) -> dict[str, Any] | None:
        """`{code, params}`, or None when there is nothing to explain."""
        return self.data.get("reason")

    @property
    def attempt(self) -> dict[str, Any] | None:
        """The newest attempt."""
        return self.data.get("attempt")

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def exit_code(self) -> int:
        """What a shell would report had the job been started by it; see `exit_code_of`."""
        return exit_code_of(self.data)

    def refresh(self) -> Job:
        self.data = self._client.get(self.id)
        return self

    def wait(self, timeout: float | None = None) -> Job:
        """Until it has ended; WaitTimeout when `timeout` seconds are not enough."""
        self.data = self._client.wait(self.id, timeout=timeout).data
        return self

    def metrics(self, **choice: Any) -> dict[str, dict[str, Any]]:
        return self._client.metrics(self.id, **choice)

    def logs(self, **choice: Any) -> list[str]:
        return self._client.logs(self.id, **choice)

    def follow_logs(self, **choice: Any) -> Iterator[str]:
        return self._client.follow_logs(self.id, **choice)

    def cancel(self, wait: float = 0) -> Job:
        self.data.update(self._client.cancel(self.id, wait=wait))
        return self

    def force_kill(self, wait: float = 0) -> Job:
        self.data.update(self._client.force_kill(self.id, wait=wait))
        return self

    def retry(self, *, fresh: bool = False) -> Job:
        self.data.update(self._client.retry(self.id, fresh=fresh).data)
        return self

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.name!r} {self.status}>"


def exit_code_of(data: Mapping[str, Any]) -> int:
    """0 completed; the job's own code; 128 + the signal that ended it; 124 timed out; 143
    cancelled; 1 when it failed without any of these."""
    status = data.get("status")
    if status == "completed":
        return 0
    if status == "cancelled":
        return 143
    attempt = data.get("attempt") or {}
    if attempt.get("end") == "timed_out":
        return 124
    code, signal = attempt.get("exit_code"), attempt.get("signal")
    if isinstance(code, int) and code:
        return code if 0 < code < 256 else 1
    if isinstance(signal, int) and signal:
        return 128 + signal
    return 1
