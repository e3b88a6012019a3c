"""How an attempt of many slices ended: one record made of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.ray_bridge.slices import Slice
from runyard.supervisor import gang_rule, slice_keeper
from runyard.supervisor.journal import Record

_NOT_OF_THE_END = ("v", "kind", "time")
_LOST = "supervisor_lost"
_TOGETHER_S = 1.0  # what is read so soon after each other may have happened in another order
_SUMMED = ("processes_ended", "shm_bytes", "log_bytes")
_JOINED = ("stuck", "was_stuck")
_ABSENT = "absent"  # nothing of it ran there
_PROOFS = (_ABSENT, "echild", "boot", "scan", "node_gone")  # the better ones first


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
    end |= _receipt(list(records.values()))
    end["ended_at"] = max(float(record["ended_at"]) for record in records.values())
    if stopped == gang_rule.LAGGED and end.get("cause") == "cancelled":
        end["cause"] = gang_rule.LAGGED
    end["slices"] = [
        {"index": index, **{name: record.get(name) for name in ("code", "signal", "cause")}}
        for index, record in sorted(records.items())
    ]
    return end


def _receipt(records: Sequence[Record]) -> Record:
    """What all of them gave back: no better proven than the worst, and as slow as the slowest."""
    signals = [sent for record in records for sent in record.get("signals") or ()]
    proofs = [str(record.get("proof")) for record in records]
    return {
        "signals": sorted(signals, key=lambda sent: float(sent["at"])),
        "temp_removed": all(
            record.get("temp_removed") for record in records if record.get("proof") != _ABSENT
        ),
        "seconds": max(float(record.get("seconds") or 0.0) for record in records),
        "proof": max(proofs, key=_weakness),
        **{
            name: [one for record in records for one in record.get(name) or ()] for name in _JOINED
        },
    }


def _weakness(proof: str) -> int:
    return _PROOFS.index(proof) if proof in _PROOFS else len(_PROOFS)


def _deciding(slices: Sequence[Slice], records: dict[int, Record]) -> int:
    """The slice that failed first; one that was told to end did not fail by itself. Where a slice
    was cut off, others that failed have lost a peer, and may well have been seen before it."""
    for index, record in records.items():
        if _cut_off(record):
            return index
    failed = sorted(
        (
            (end, one.index)
            for one in slices
            if not _told_to_end(records[one.index])
            for end in one.ends
            if end.failed
        ),
        key=lambda pair: pair[0].at,
    )
    if failed:
        together = [end for end, _ in failed if end.at - failed[0][0].at <= _TOGETHER_S]
        first = gang_rule.seen_together(together)[0]
        return next(index for end, index in failed if end is first)
    unwell = [one.index for one in slices if records[one.index].get("code") != 0]
    return unwell[0] if unwell else slices[0].index


def _cut_off(record: Record) -> bool:
    """Lost with its node or its actor while its ranks were well."""
    return record.get("cause") == _LOST and record.get("code") is None and not _told_to_end(record)


def _told_to_end(record: Record) -> bool:
    """By a person or by us; one that lost its actor was told only because of that."""
    stop: dict[str, Any] = record.get("stop") or {}
    return str(stop.get("cause", slice_keeper.LIFELINE_LOST)) != slice_keeper.LIFELINE_LOST


def _plain(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in _NOT_OF_THE_END}
