"""When the ranks of one attempt are ended together, and which of them decides how it ended.

Only decisions: the supervisor asks for the ranks of its node, an executor of many nodes for all.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import NamedTuple

FAILED = "rank_failed"
LAGGED = "rank_lagged"
DEFAULT_GRACE_S = 10.0
DEFAULT_SKEW_S = 600.0

_NEVER = float("inf")
# What a rank dies of that lost its peers; any other signal came first.
_CONSEQUENCES = (signal.SIGABRT, signal.SIGTERM, signal.SIGINT)


class RankEnd(NamedTuple):
    """`at` is by any clock that all ends of one gang share. Both None: nobody knows."""

    rank: int
    code: int | None
    signal: int | None
    at: float

    @property
    def failed(self) -> bool:
        return self.code != 0


class Verdict(NamedTuple):
    """`cause` is empty while nothing has to be done; `due` is when that may change by itself."""

    cause: str
    due: float


def decide(
    ends: Sequence[RankEnd], ranks: int, now: float, grace_s: float, skew_s: float
) -> Verdict:
    """Whether those that still run have to be ended now. The first that failed leaves the others
    `grace_s` to fail by themselves, so that their last lines are seen; the first that ended well
    leaves them `skew_s` to do the same."""
    if not ends or len(ends) >= ranks:
        return Verdict("", _NEVER)
    failed = [end.at for end in ends if end.failed]
    due = min(failed) + grace_s if failed else min(end.at for end in ends) + skew_s
    cause = FAILED if failed else LAGGED
    return Verdict(cause if now >= due else "", due)


def deciding(ends: Sequence[RankEnd], ranks: int) -> RankEnd | None:
    """The end that is the attempt's: the first failure in the order given, else the last end of
    all; None while that is open."""
    for end in ends:
        if end.failed:
            return end
    return ends[-1] if ends and len(ends) >= ranks else None


def seen_together(ends: Sequence[RankEnd]) -> list[RankEnd]:
    """Ends that were met in one look, in the likely order: a rank that a signal ended out of the
    blue went before those that failed because it was gone."""
    return sorted(ends, key=lambda end: end.signal is None or end.signal in _CONSEQUENCES)
