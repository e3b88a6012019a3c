"""One line of the metrics file that `runyard.report`, or a program in any language, appended."""

from __future__ import annotations

import json
from typing import Any

from runyard.domain.progress import phases, record
from runyard.domain.progress.point import Checkpoint, Point, Stale

SOURCE = "report"
LONGEST_LINE = 65_536
LONGEST_PATH = 4096

# A line may be old when it is read, because the server was down; it cannot be from the future.
OLDEST_S = 400 * 86_400.0
NEWEST_S = 300.0

_OWN = frozenset({"v", "t", "m", "pid", "rank", "kind", "path", "time", "timestamp"})


def parse_line(
    text: str, read_at: float, token: str | None = None
) -> Point | Checkpoint | Stale | None:
    """What the line tells; None if it cannot be understood. `read_at` is the reader's clock, and
    the time of lines whose own is missing or cannot be. `token` is that of the attempt: a line
    with another one is of a rank that should be gone."""
    if len(text) > LONGEST_LINE:
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    said = fields.get("token")
    if token is not None and isinstance(said, str) and said != token:
        return Stale()
    seen = record.read(fields, own=_OWN | {"token"} if isinstance(said, str) else _OWN)
    at, rank = _time(fields, read_at), _rank(fields.get("rank"))
    if fields.get("kind") == "checkpoint":
        return _checkpoint(fields.get("path"), at, rank, seen)
    if "kind" in fields and fields["kind"] not in ("report", "metrics"):
        return None  # of a later version
    point = Point(
        at,
        SOURCE,
        step=seen.step,
        epoch=seen.epoch,
        values=seen.values,
        total_steps=seen.total_steps,
        total_epochs=seen.total_epochs,
        fraction=seen.fraction,
        rank=rank,
        phase=fields["phase"] if fields.get("phase") in phases.ALL else None,
    )
    return point if point.tells_progress or point.values or point.phase else None


def _checkpoint(path: object, at: float, rank: int, seen: record.Record) -> Checkpoint | None:
    if not isinstance(path, str) or not path.startswith("/") or len(path) > LONGEST_PATH:
        return None
    if "\0" in path:
        return None
    return Checkpoint(at, path, seen.step, seen.values, rank)


def _time(fields: dict[str, Any], read_at: float) -> float:
    for name in ("t", "time", "timestamp"):
        said = fields.get(name)
        if isinstance(said, int | float) and not isinstance(said, bool):
            said = record.as_number(said)
            if said is not None and read_at - OLDEST_S <= said <= read_at + NEWEST_S:
                return said
    return read_at


def _rank(given: object) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 1_000_000:
        return given
    return 0
