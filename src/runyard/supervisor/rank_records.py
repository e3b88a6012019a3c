"""What a journal says about the ranks of its attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runyard.supervisor import gang_rule

if TYPE_CHECKING:
    from runyard.supervisor.journal import Journal, Record


def exits(record: Journal) -> list[Record]:
    """The ends of ranks, in the order in which they were seen."""
    return [one for one in record.records if one["kind"] == "main_exit" and "rank" in one]


def has_exit(record: Journal, rank: int) -> bool:
    return any(one["rank"] == rank for one in exits(record))


def deciding(record: Journal, ranks: int) -> Record | None:
    """The end of the rank that is the attempt's end, once that is known."""
    seen = exits(record)
    found = gang_rule.deciding([end_of(one) for one in seen], ranks)
    return next((one for one in seen if found and one["rank"] == found.rank), None)


def end_of(record: Record) -> gang_rule.RankEnd:
    return gang_rule.RankEnd(
        record["rank"], record["code"], record["signal"], float(record["ended_at"])
    )


def told(spec: Record, seen: Sequence[Record], first: Record | None) -> dict[str, Any]:
    """For an exit record: every rank, how it ended as far as that is known, and which one failed
    first, unless it was told to end."""
    by_rank = {one["rank"]: one for one in seen}
    fields = ("code", "signal", "ended_at")
    ranks = [
        {"rank": rank, **{name: by_rank.get(rank, {}).get(name) for name in fields}}
        for rank in (one["rank"] for one in spec["ranks"])
    ]
    found: dict[str, Any] = {"ranks": ranks}
    if first is not None and _to_blame(first):
        found["rank"] = first["rank"]
    return found


def states(record: Journal) -> list[dict[str, Any]]:
    """Each rank as it is by now; none of an attempt of one process."""
    spec = record.spec
    if spec is None or not spec.get("ranks"):
        return []
    jobs = {one["rank"]: one for one in record.records if one["kind"] == "job" and "rank" in one}
    ended = {one["rank"]: one for one in exits(record)}
    return [_state(one, jobs.get(one["rank"]), ended.get(one["rank"])) for one in spec["ranks"]]


def _state(launch: Record, job: Record | None, end: Record | None) -> dict[str, Any]:
    return {
        "rank": launch["rank"],
        "local_rank": launch["local_rank"],
        "state": "ended" if end else "running" if job else "starting",
        "pid": job["pid"] if job else None,
        "exit_code": end["code"] if end else None,
        "signal": end["signal"] if end else None,
        "ended_at": end["ended_at"] if end else None,
    }


def _to_blame(end: Record) -> bool:
    stop = end.get("stop")
    if stop is not None:
        return bool(stop["cause"] == gang_rule.LAGGED)
    return bool(end["code"] != 0)
