"""The Python client: one method per thing a server can be asked, in the API's own words."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runyard.sdk import errors
from runyard.sdk.alert_rules import AlertRules
from runyard.sdk.asking import BASE, given, in_path, job_path, rows
from runyard.sdk.connection import Connection
from runyard.sdk.drills import Drills
from runyard.sdk.job import Job
from runyard.sdk.job_logs import JobLogs
from runyard.sdk.machines import Machines
from runyard.sdk.notifications import Notifications
from runyard.sdk.recovery import Recovery
from runyard.sdk.results import Results

if TYPE_CHECKING:
    from runyard.sdk.follower import View
    from runyard.sdk.services import LocalService
    from runyard.sdk.session import Session

_LONG_POLL_S = 30.0
_ANSWER_S = 10.0  # within this a server that is there answers


class Client(Machines, JobLogs, AlertRules, Notifications, Results, Drills, Recovery):
    """Talks to one server over HTTP. Safe to share between threads.

    Without arguments it finds the server as the CLI does: RUNYARD_URL and RUNYARD_API_KEY, else
    the local data directory. Every method raises the exceptions of `runyard.sdk.errors`.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        data_dir: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        if url is None or key is None:
            from runyard import settings

            found_url, found_key = settings.client_target(data_dir)
            # A key found here belongs to the server found here, and is sent to no other.
            if key is None:
                key = found_key if url is None or url.rstrip("/") == found_url.rstrip("/") else ""
            url = url or found_url
        super().__init__(Connection(url, key, timeout))

    @property
    def url(self) -> str:
        return self._connection.url

    def close(self) -> None:
        """Close its connections; the next request opens another."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # jobs

    def submit(
        self,
        job: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Job:
        """Submit a job given as a mapping, as keywords or both; it is kept when this returns."""
        body = {**(job or {}), **fields}
        return Job(self, {**body, **self._submit("/jobs", body, idempotency_key)})

    def submit_many(
        self, jobs: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> list[Job]:
        """All or none."""
        answer = self._submit(
            "/jobs/batch", {"jobs": [dict(job) for job in jobs]}, idempotency_key
        )
        made = answer["jobs"] if isinstance(answer, dict) else answer
        return [Job(self, {**job, **data}) for job, data in zip(jobs, made, strict=True)]

    def get(self, job_id: str | int, *, timeout: float | None = None) -> dict[str, Any]:
        """The job as the server tells it."""
        path = BASE + job_path(job_id)
        answer: dict[str, Any] = self._connection.request("GET", path, timeout_s=timeout).json()
        return answer

    def job(self, job_id: str | int) -> Job:
        return Job(self, self.get(job_id))

    def jobs(
        self,
        *,
        status: str | Sequence[str] | None = None,
        job_type: str | None = None,
        owner: str | None = None,
        text: str | None = None,
        labels: Mapping[str, str] | None = None,
        since: float | str | None = None,
        ended_since: float | str | None = None,
        limit: int | None = None,
        page_size: int = 200,
    ) -> Iterator[Job]:
        """Newest first, page after page; at most `limit`."""
        query = given(
            status=status,
            type=job_type,
            owner=owner,
            q=text,
            label=[f"{name}={value}" for name, value in (labels or {}).items()],
            since=since,
            ended_since=ended_since,
        )
        left = limit
        while left is None or left > 0:
            query["limit"] = page_size if left is None else min(left, page_size)
            rows, cursor, _ = self.page(query)
            yield from (Job(self, row) for row in rows)
            if left is not None:
                left -= len(rows)
            if not cursor or not rows:
                return
            query["cursor"] = cursor

    def page(
        self, query: Mapping[str, Any]
    ) -> tuple[list[dict[str, Any]], str | None, int | None]:
        """One page of the list: rows, cursor of the next page, how many there are in all."""
        reply = self._connection.request("GET", f"{BASE}/jobs", query=query)
        total = reply.headers.get("X-Total-Count")
        cursor = reply.headers.get("X-Next-Cursor")
        return reply.json(), cursor, int(total) if total else None

    def delete(self, job_id: str | int) -> None:
        """Forget an ended job: record, folders and logs."""
        self._connection.request("DELETE", BASE + job_path(job_id))

    def cancel(
        self, job_id: str | int, *, wait: float = 0, timeout: float | None = None
    ) -> dict[str, Any]:
        """Ask for its end; `{status: cancelled, receipt}` once proven gone within `wait` seconds,
        else `{status: cancelling}`."""
        return self._stop(job_id, "cancel", wait, timeout)

    def force_kill(
        self, job_id: str | int, *, wait: float = 0, timeout: float | None = None
    ) -> dict[str, Any]:
        """Cancel without grace."""
        return self._stop(job_id, "force-kill", wait, timeout)

    def cancel_many(
        self, job_ids: Sequence[str | int], *, force: bool = False, wait: float = 0
    ) -> dict[str, Any]:
        """`{cancelled: [ids], cancelling: [ids], refused: [{job_id, code, message}]}`."""
        reply = self._connection.request(
            "POST",
            f"{BASE}/jobs/cancel",
            query={"wait": f"{wait:g}"} if wait else None,
            body={"ids": [str(job_id) for job_id in job_ids], "force": force},
            timeout_s=wait + 60,
            repeatable=True,
        )
        return dict(reply.json())

    def retry(self, job_id: str | int, *, fresh: bool = False) -> Job:
        """Run an ended job again; `fresh` does not resume from a checkpoint."""
        query = {"fresh": "true"} if fresh else None
        return self._changed(job_id, self._do(job_path(job_id) + "/retry", query=query))

    def hold(self, job_id: str | int) -> Job:
        return self._changed(job_id, self._do(job_path(job_id) + "/hold"))

    def release(self, job_id: str | int) -> Job:
        return self._changed(job_id, self._do(job_path(job_id) + "/release"))

    def renew(self, job_id: str | int, *, timeout: float = 5.0) -> dict[str, Any]:
        """Renew its lease: `{job_id, lease_s, expires_at}`. Sessions do it by themselves."""
        path = BASE + job_path(job_id) + "/lease"
        reply = self._connection.request("POST", path, timeout_s=timeout, repeatable=True)
        return dict(reply.json() or {})

    def wait(self, job_id: str | int, *, timeout: float | None = None) -> Job:
        """Until the job has ended; WaitTimeout when `timeout` seconds are not enough."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _LONG_POLL_S if deadline is None else deadline - time.monotonic()
            job = self.wait_once(job_id, max(0.0, min(left, _LONG_POLL_S)))
            if job.ended:
                return job
            if deadline is not None and time.monotonic() >= deadline:
                raise errors.WaitTimeout(
                    f"Job {job_id} is still {job.status} after {round(timeout or 0, 1):g} s.",
                    params={
                        "job": str(job_id),
                        "status": job.status,
                        "seconds": round(timeout or 0, 1),
                    },
                )

    def wait_once(self, job_id: str | int, seconds: float) -> Job:
        """The job as soon as it has ended, or as it is after `seconds` (a minute at most)."""
        began = time.monotonic()
        path, query = f"{BASE}{job_path(job_id)}/wait", {"timeout": f"{seconds:.3f}"}
        reply = self._connection.request("GET", path, query=query, timeout_s=seconds + _ANSWER_S)
        job = Job(self, reply.json())
        # A server that is going away answers early, and must not be asked again at once.
        if not job.ended and time.monotonic() - began < min(seconds, 0.5):
            time.sleep(min(seconds, 0.5))
        return job

    def attempts(self, job_id: str | int) -> list[dict[str, Any]]:
        return rows(self._ask(job_path(job_id) + "/attempts"))

    def events(self, job_id: str | int, *, after: int = 0) -> list[dict[str, Any]]:
        return rows(self._ask(job_path(job_id) + "/events", given(after=after or None)))

    def receipt(self, job_id: str | int, *, timeout: float | None = None) -> dict[str, Any]:
        """Proof of what the newest end gave back."""
        path = f"{BASE}{job_path(job_id)}/receipt"
        return dict(self._connection.request("GET", path, timeout_s=timeout).json())

    def explain(self, job_id: str | int) -> dict[str, Any]:
        return dict(self._ask(job_path(job_id) + "/explain"))

    def metrics(
        self,
        job_id: str | int,
        *,
        keys: str | Sequence[str] | None = None,
        points: int | None = None,
        since: float | str | None = None,
        attempt: int | None = None,
    ) -> dict[str, dict[str, Any]]:
        """By name: `steps`, `times`, `values` and `sampled`, which is true when there are more
        points than these. Of all metrics when no `keys` are given."""
        query = given(keys=keys, points=points, since=since, attempt=attempt)
        found = self._ask(job_path(job_id) + "/metrics", query)["series"]
        return {
            name: {**series, "values": [float(value) for value in series["values"]]}
            for name, series in found.items()
        }

    def run(
        self,
        job: Mapping[str, Any] | None = None,
        *,
        local_services: Sequence[LocalService] = (),
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> Job:
        """Submit, write the log to stdout while it runs, and return the ended job. As in
        `runyard run`, SIGINT and SIGTERM cancel it; KeyboardInterrupt or SystemExit follows."""
        with self.session(
            job, local_services=local_services, idempotency_key=idempotency_key, **fields
        ) as session:
            return session.follow()

    def session(
        self,
        job: Mapping[str, Any] | None = None,
        *,
        local_services: Sequence[LocalService] = (),
        idempotency_key: str | None = None,
        view: View | None = None,
        **fields: Any,
    ) -> Session:
        """For `with`: start the local services, submit, and on leaving, however that comes about,
        cancel the job (unless it ended or was detached), then stop the services."""
        from runyard.sdk.session import Session

        return Session(
            self,
            {**(job or {}), **fields},
            local_services=local_services,
            idempotency_key=idempotency_key,
            view=view,
        )

    def enqueue(self, job_id: str | int, *, priority: str | None = None) -> Job:
        """Release a hold and set the priority."""
        path = f"/queue/enqueue/{in_path(job_id)}"
        return self._changed(job_id, self._do(path, query=given(priority=priority)))

    # how

    def _submit(self, path: str, body: Any, idempotency_key: str | None) -> Any:
        # With the key a lost answer can be asked for again without making a second job.
        key = idempotency_key or os.urandom(16).hex()
        headers = {"Idempotency-Key": key}
        return self._connection.request(
            "POST", BASE + path, body=body, headers=headers, repeatable=True
        ).json()

    def _stop(
        self, job_id: str | int, verb: str, wait: float, timeout: float | None
    ) -> dict[str, Any]:
        # Asking for the same end twice is asking once, so this may be repeated.
        answer: dict[str, Any] = self._connection.request(
            "POST",
            f"{BASE}{job_path(job_id)}/{verb}",
            query={"wait": f"{wait:g}"} if wait else None,
            timeout_s=timeout or wait + 10,
            repeatable=True,
        ).json()
        return answer

    def _changed(self, job_id: str | int, answer: Any) -> Job:
        whole = isinstance(answer, dict) and "job_id" in answer
        return Job(self, answer if whole else self.get(job_id))
