"""Previews, stories, configurations and capacity as answers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from runyard.api import answers, equivalents, repair_answers
from runyard.api.json_body import iso
from runyard.domain import events
from runyard.domain.reasons import Reason
from runyard.engine.read.job_story import Chapter
from runyard.engine.read.page_reads import Configuration, PastWait, Room
from runyard.engine.read.views import Wait
from runyard.engine.submit.previewing import Preview

_ENDS = frozenset(
    {events.JOB_COMPLETED, events.JOB_FAILED, events.JOB_CANCELLED, events.JOB_RETRYING}
)


def preview(found: Preview, nodes: dict[str, str]) -> dict[str, Any]:
    placed = found.placed
    return {
        "starts_now": placed is not None,
        "placement": placed
        and {
            "node_id": placed.node_id,
            "node": nodes.get(placed.node_id, placed.node_id),
            "executor": placed.executor,
            "gpus": [grant.index for grant in placed.gpus],
        },
        "wait": None if placed else answers.wait(_wait(found)),
        "request": answers.request(found.job.spec.request),
        "suggestion": repair_answers.suggestion(found.suggestion),
    }


def _wait(found: Preview) -> Wait:
    return Wait(
        found.reason or Reason("queued"),
        found.position,
        found.est_start_low,
        found.est_start_high,
        found.blockers,
    )


def chapter(found: Chapter) -> dict[str, Any]:
    it, attempt = found.event.event, found.attempt
    ended = attempt if it.code in _ENDS else None
    return {
        "id": found.event.id,
        "code": it.code,
        "at": iso(it.at),
        "actor": it.actor,
        "attempt": attempt.number if attempt else None,
        "params": it.params if found.found is None else {**it.params, "found": found.found},
        "cause": found.cause,
        "action": found.action,
        "changes": list(found.changes),
        "lines": [asdict(line) for line in found.lines],
        "end": ended.end.value if ended and ended.end else None,
        "exit_code": ended.exit_code if ended else None,
        "signal": ended.signal if ended else None,
    }


def configuration(found: Configuration) -> dict[str, Any]:
    job = found.view.job
    submitted = equivalents.body_of(answers.job(found.view))
    effective = answers.job(replace(found.view, job=replace(job, spec=found.effective)))
    return {
        "submitted": submitted,
        "effective": equivalents.body_of(effective),
        "changes": list(found.changes),
        "cli": equivalents.command_line(submitted),
        "yaml": equivalents.job_file(submitted),
    }


def capacity(rooms: Sequence[Room], slots: int, used: int) -> dict[str, Any]:
    return {"slots": slots, "slots_used": used, "nodes": [_room(room) for room in rooms]}


def _room(room: Room) -> dict[str, Any]:
    has = room.node.capacity
    return {
        "node_id": room.node.node_id,
        "node": room.node.name,
        "cpu_cores": has.cpu_milli / 1000,
        "cpu_cores_used": room.cpu_milli / 1000,
        "memory_gb": round(has.memory_mb / 1024, 3),
        "memory_gb_used": round(room.memory_mb / 1024, 3),
        "gpu_count": len(has.gpus),
        "gpu_count_used": room.gpu_milli / 1000,
        "attempts": room.attempts,
    }


def past_waits(found: Sequence[PastWait]) -> dict[str, Any]:
    seconds = sorted(one.scheduled_at - one.queued_at for one in found)
    return {
        "waits": [
            {
                "job_id": one.job_ref,
                "at": iso(one.scheduled_at),
                "seconds": round(one.scheduled_at - one.queued_at, 3),
            }
            for one in found
        ],
        "median_s": round(statistics.median(seconds), 3) if seconds else None,
        "p90_s": round(seconds[int(0.9 * (len(seconds) - 1))], 3) if seconds else None,
    }
