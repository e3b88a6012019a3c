"""What supervisors say, as the port tells it: their datagrams as news, journals as sightings."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from runyard.executors.base import News, NewsKind, Sight, Sighting
from runyard.executors.end_records import end_of, process_words
from runyard.supervisor.journal import Journal


def news_of(told: dict[str, Any]) -> News | None:
    """What a supervisor's or keeper's datagram means; None where it means nothing to us."""
    attempt_id = str(told["attempt_id"])
    at = float(told.get("at", time.time()))
    match told["kind"]:
        case "started":
            return News(attempt_id, NewsKind.STARTED, float(told.get("started_at", at)))
        case "ended" if isinstance(told.get("exit"), dict):
            return News(attempt_id, NewsKind.ENDED, at, end_of(told["exit"]))
        case "stuck":
            stuck = tuple(process_words(found) for found in told.get("processes", ()))
            return News(attempt_id, NewsKind.STUCK, at, stuck=stuck)
        case "gpus_held":
            waited_s = float(told["waited_s"])
            gpus = tuple(told["gpus"])
            return News(attempt_id, NewsKind.GPUS_HELD, at, gpus=gpus, waited_s=waited_s)
        case str(kind) if kind.startswith("service_"):
            return News(attempt_id, NewsKind.SERVICE, at, service=told)
        case "finishing":
            return News(attempt_id, NewsKind.FINISHING, at)
        case "stopping":
            cause, grace_s = str(told["cause"]), float(told["grace_s"])
            return News(attempt_id, NewsKind.STOPPING, at, cause=cause, grace_s=grace_s)
        case "ended" | "lost":
            return News(attempt_id, NewsKind.LOST_SIGHT, at)
    return None


def sighting_of(
    written: Journal, asked: Mapping[str, Any] | None, hung_since: float | None
) -> Sighting:
    """An attempt without an end; `asked` is the request to stop it."""
    seq = int(asked["seq"]) if asked else 0
    if written.job is None:
        return Sighting(Sight.STARTING, stop_seq=seq, hung_since=hung_since)
    stopping = asked is not None or written.main_exit is not None
    return Sighting(
        Sight.STOPPING if stopping else Sight.RUNNING,
        started_at=float(written.job["started_at"]),
        stop_seq=seq,
        hung_since=hung_since,
    )
