"""English."""

from __future__ import annotations

TITLES = {
    "completed": "Job {name} completed",
    "failed": "Job {name} failed",
    "cancelled": "Job {name} was cancelled",
    "repaired": "Job {name} was repaired and goes on",
    "alert": "Alert ({level}): {code}",
    "alert_of_job": "Alert ({level}) for job {name}: {code}",
    "test": "Runyard can reach you",
}

LINES = {
    "job": "Job: {job_id}",
    "owner": "Owner: {owner}",
    "reason": "Reason: {reason}",
    "exit_code": "Exit code: {exit_code}",
    "took": "Ran for: {took}",
    "node": "Node: {node_id}",
    "params": "Details: {params}",
    "url": "More: {url}",
    "test": "This is a test asked for by {asked_by}. Nothing has happened.",
}
