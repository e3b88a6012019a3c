"""The logs of a distributed attempt's ranks as evidence; which of them tells why it failed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runyard.domain import distributed
from runyard.domain.distributed import Distributed
from runyard.domain.failures.categories import Category
from runyard.domain.failures.classify import classify
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.failures.evidence import Evidence, LogLine, RankLog
from runyard.domain.reasons import Reason
from runyard.executors.base import End
from runyard.logs import log_ends

MOST_LOGS = 16
_REPORT = "Root Cause (first observed failure)"
_RANK = re.compile(r"\s*rank\s*: (\d{1,6}) \(local_rank")
# What a rank says that only lost its partner.
_ECHOES = frozenset({Category.COMM_HANG, Category.COMM_NET, Category.RENDEZVOUS})


def of_end(path_of: Callable[[int], str], shape: Distributed, end: End) -> tuple[RankLog, ...]:
    """Of the rank that failed first, of the first rank, then of those that ended next."""
    ended = {one["rank"]: one.get("ended_at") for one in end.detail.get("ranks") or ()}
    first = end.detail.get("rank")
    ranks = sorted(
        distributed.logged_ranks(shape),
        key=lambda rank: (rank != first, rank != 0, ended.get(rank) or float("inf"), rank),
    )
    return tuple(
        of_rank(rank, log_ends.read(path_of(rank)), ended.get(rank) or end.ended_at)
        for rank in ranks[:MOST_LOGS]
    )


def classified(evidence: Evidence) -> Diagnosis | None:
    """By the log of the rank that failed first. Where that one only lost its partner or says
    nothing, by the logs of all: a rank may be long in ending after what it failed by."""
    first = evidence.detail.get("rank")
    if first is None and evidence.world_size > 1:
        first = _told_by_torchrun(evidence.logs)
        return _named(classify(evidence), {"rank": first})
    own = tuple(log for log in evidence.logs if log.rank == first)
    if len(evidence.logs) < 2 or not own:
        return _named(classify(evidence), evidence.detail)
    found = classify(replace(evidence, logs=own))
    if found is None or (found.root is not None and found.category not in _ECHOES):
        return _named(found, evidence.detail)
    together = classify(evidence)
    told = together is not None and together.root is not None
    if together is None or not told or together.category in _ECHOES:
        return _named(found, evidence.detail)
    return _named(together, {"rank": together.root.rank if together.root else first})


def _told_by_torchrun(logs: Sequence[RankLog]) -> int | None:
    """The rank that its report calls the root cause: the first failure it observed."""
    for log in logs:
        told = iter(line.text for line in log.tail)
        if any(_REPORT in text for text in told):
            for text in told:
                if found := _RANK.match(text):
                    return int(found[1])
    return None


def _named(found: Diagnosis | None, detail: Mapping[str, Any]) -> Diagnosis | None:
    """With the rank that failed first, which people should look at."""
    rank = detail.get("rank")
    if found is None or rank is None:
        return found
    told = Reason(found.explanation.code, {**found.explanation.params, "rank": rank})
    return replace(found, explanation=told, facts={**found.facts, "rank": rank})


def of_rank(rank: int, ends: log_ends.LogEnds, ended_at: float) -> RankLog:
    errors = tuple(LogLine(number, text) for number, text in ends.first_errors)
    tail = tuple(LogLine(number, text) for number, text in ends.tail)
    return RankLog(rank, errors, tail, ended_at)
