"""What a client asks of a job's log: lines, bytes, and lines as they are written."""

from __future__ import annotations

from collections.abc import Iterator

from runyard.sdk.asking import BASE, given, job_path
from runyard.sdk.connection import Connection


class JobLogs:
    _connection: Connection

    def logs(
        self,
        job_id: str | int,
        *,
        tail: int | None = None,
        start: int | None = None,
        limit: int | None = None,
        grep: str | None = None,
        rank: int | None = None,
        attempt: int | None = None,
        service: str | None = None,
    ) -> list[str]:
        """Lines of the log (the last 100 by default), progress bars folded to their last state.
        Lines count from 0."""
        query = {"from": start} if start is not None else {}
        chosen = given(rank=rank, attempt=attempt, service=service)
        query.update(given(tail=tail, limit=limit, grep=grep), **chosen)
        answer = self._connection.request("GET", _path(job_id), query=query).json()
        return [str(line) for line in answer["logs"]]

    def log_bytes(
        self,
        job_id: str | int,
        *,
        offset: int = 0,
        length: int | None = None,
        rank: int | None = None,
        attempt: int | None = None,
        service: str | None = None,
    ) -> bytes:
        """The log exactly as it was written; a line tells where bytes were dropped at the cap."""
        return self.log_part(
            job_id, offset=offset, length=length, rank=rank, attempt=attempt, service=service
        )[0]

    def log_part(
        self,
        job_id: str | int,
        *,
        offset: int = 0,
        length: int | None = None,
        rank: int | None = None,
        attempt: int | None = None,
        service: str | None = None,
    ) -> tuple[bytes, int]:
        """Bytes of the log, and how many it has in all by now."""
        chosen = given(rank=rank, attempt=attempt, service=service)
        query = given(raw="true", offset=offset, length=length) | chosen
        reply = self._connection.request("GET", _path(job_id), query=query)
        return reply.data, int(reply.headers.get("X-Log-Size") or offset + len(reply.data))

    def follow_logs(
        self,
        job_id: str | int,
        *,
        tail: int | None = None,
        grep: str | None = None,
        rank: int | None = None,
        attempt: int | None = None,
        service: str | None = None,
    ) -> Iterator[str]:
        """Lines as they are written, until the attempt has ended."""
        from runyard.sdk import following

        return following.lines(
            self._connection,
            _path(job_id),
            given(tail=tail, grep=grep, rank=rank, attempt=attempt, service=service),
        )


def _path(job_id: str | int) -> str:
    return f"{BASE}{job_path(job_id)}/logs"
