"""Whether a failed attempt is tried again, when, and whether that counts against max_retries."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.domain import ending, reasons
from runyard.domain.reasons import Reason
from runyard.domain.recovery import backoff
from runyard.domain.states import AttemptEnd

# Free retries of one job in all: one that takes its supervisor down each time must not go on.
MOST_FREE = 20
LONGEST_FREE_DELAY_S = 60.0

# The same program in the same place fails the same way again.
_HOPELESS = frozenset(
    {
        errno.ENOENT,
        errno.EACCES,
        errno.EPERM,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.E2BIG,
        errno.EINVAL,
        errno.EROFS,
    }
)
# What the machine lacks it lacks the next time, too.
_MISSING = frozenset(
    {ending.CWD_MISSING, ending.ISOLATION_UNAVAILABLE, ending.GPU_RUNTIME_MISSING}
)


@dataclass(frozen=True, slots=True)
class Retry:
    delay_s: float
    charged: bool  # counts against max_retries


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: Reason | None


def decide(
    end: AttemptEnd,
    cause: str,
    *,
    charged: int,
    max_retries: int,
    free: int = 0,
    delays: Sequence[float] = backoff.DELAYS,
    jitter: float = 0.0,
    detail: Mapping[str, Any] | None = None,
    reason: Reason | None = None,
) -> Retry | GiveUp:
    """`charged` and `free` are the retries so far that counted and that did not; the last of
    `delays` repeats; `jitter` is a random number in [0, 1); `reason` is the attempt's own."""
    if is_hopeless(cause, detail or {}):
        return GiveUp(reason)
    if end is AttemptEnd.NEVER_STARTED or (end is AttemptEnd.LOST and max_retries > 0):
        if free >= MOST_FREE:
            return GiveUp(reason)
        wait = min(2.0**free - 1, LONGEST_FREE_DELAY_S)
        return Retry(backoff.spread(wait, jitter), charged=False)
    if charged >= max_retries:
        return GiveUp(_used_up(max_retries, reason) if max_retries else reason)
    return Retry(backoff.delay(delays, charged, jitter), charged=True)


def delay_reason(last: Reason | None, until: float, attempt: int) -> Reason:
    """Why a job that is retried waits; `attempt` is the one that failed."""
    cause = None if last is None else _told(last)
    return Reason(reasons.RETRY_DELAY, {"until": until, "attempt": attempt, "cause": cause})


def is_hopeless(cause: str, detail: Mapping[str, Any]) -> bool:
    """Whether trying again cannot help."""
    if cause in _MISSING:
        return True
    unexecutable = (ending.EXEC_FAILED, ending.START_FAILED, ending.SERVICE_FAILED)
    return cause in unexecutable and detail.get("errno") in _HOPELESS


def _used_up(max_retries: int, last: Reason | None) -> Reason:
    told = None if last is None else _told(last)
    return Reason(reasons.RETRIES_USED_UP, {"max_retries": max_retries, "last": told})


def _told(reason: Reason) -> dict[str, Any]:
    return {"code": reason.code, "params": dict(reason.params)}
