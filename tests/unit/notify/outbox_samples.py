"""Deliveries to try senders with."""

from __future__ import annotations

from runyard.domain.notifications import Delivery, DeliveryStatus, Recipient

START = 1_790_000_000.0
JOB = {
    "job_id": "job-7k2m9q4x",
    "name": "llama-7b",
    "status": "failed",
    "reason": {"code": "exit_code", "params": {"code": 3}},
    "owner": "anna",
    "started_at": "2026-11-15T10:00:00.000000Z",
    "ended_at": "2026-11-15T12:03:04.000000Z",
    "exit_code": 3,
    "url": "http://127.0.0.1:8765/jobs/job-7k2m9q4x",
}
ALERT = {
    "id": 4,
    "key": "disk:node-1",
    "level": "critical",
    "code": "disk_full",
    "params": {"free_gb": 1.5},
    "job_id": None,
    "node_id": "node-1",
}


def delivery(event: str = "failed", **body: object) -> Delivery:
    told = {"delivery": "dlv-1", "event": event, "at": JOB["ended_at"], "job": JOB, **body}
    return Delivery(
        id=1,
        delivery_id="dlv-1",
        event=event,
        job_id=1,
        job_ref="job-7k2m9q4x",
        recipient=Recipient("webhook"),
        body=told,
        status=DeliveryStatus.SENDING,
        tries=1,
        due_at=START,
        claimed_by="node-1",
        created_at=START,
        sent_at=None,
        last_error=None,
    )
