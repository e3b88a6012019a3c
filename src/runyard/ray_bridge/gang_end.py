"""How an attempt of many slices ended: one record made of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.ray_bridge.slices import Slice
from runyard.supervisor import gang_rule
from runyard.supervisor.journal import Record

_NOT_OF_THE_END = ("v", "kind", "time")
_SUMMED = ("processes_ended", "shm_bytes", "log_bytes")


def merged(slices: Sequence[Slice], stopped: str) -> Record:
    """The end of the slice that decides, with the ranks of all. `stopped` is why we ended them
    ourselves, empty if we did not."""
    records = {one.index: _plain(one.exit or {}) for one in slices}
    if len(slices) == 1:
        return records[slices[0].index]
    chosen = _deciding(slices, records)
    end = dict(records[chosen])
    ranks = [rank for record in records.values() for rank in record.get("ranks", ())]
    if ranks:
        end["ranks"] = sorted(ranks, key=lambda rank: int(rank["rank"]))
    for name in _SUMMED:
        end[name] = sum(record.get(name) or 0 for record in records.values())
    end["ended_at"] = max(float(record["ended_at"]) for record in records.values())
    if stopped == gang_rule.LAGGED and end.get("cause") == "cancelled":
        end["cause"] = gang_rule.LAGGED
    end["slices"] = [
        {"index": index, **{name: record.get(name) for name in ("code", "signal", "cause")}}
        for index, record in sorted(records.items())
    ]
    return end


def _deciding(slices: Sequence[Slice], records: dict[int, Record]) -> int:
    """The slice that failed first; one that was told to end did not fail by itself."""
    failed = [
        (_seen(one), one.index)
        for one in slices
        if records[one.index].get("code") != 0 and not records[one.index].get("stop")
    ]
    if failed:
        return min(failed)[1]
    unwell = [one.index for one in slices if records[one.index].get("code") != 0]
    return unwell[0] if unwell else slices[0].index


def _seen(one: Slice) -> float:
    return min((end.at for end in one.ends if end.failed), default=float("inf"))


def _plain(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in _NOT_OF_THE_END}
