"""The ranks of an attempt on this node: started all or none, watched together, ended together."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from runyard.supervisor import (
    end_record,
    gang_rule,
    log_bound,
    protocol,
    stopping,
)
from runyard.supervisor.child import Child, fork_child

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt

_RETRY_S = 0.25
_NEVER = float("inf")

Refusal = tuple[str, dict[str, Any]]


class Gang:
    __slots__ = ("_ends", "_look", "_told", "_unrecorded", "ranks")

    def __init__(self, ranks: list[dict[str, Any]]) -> None:
        self.ranks = ranks
        self._ends: list[gang_rule.RankEnd] = []  # by a clock that never jumps
        self._look: list[gang_rule.RankEnd] = []  # those seen in the look under way
        self._told = False
        self._unrecorded = False  # an end is not on record yet: the disk is full

    def start(self, attempt: Attempt) -> Refusal | None:
        """The identity of all, then go for all; the cause and its detail if one cannot run. The
        others are then in `attempt.mains`, for the caller to end."""
        children: list[Child] = []
        try:
            children.append(attempt.host.take_child())
            while len(children) < len(self.ranks):
                children.append(fork_child())
            attempt.reached("forked")
            self._record(attempt, children)
        except OSError as error:
            for child in children:
                child.discard()
            return end_record.unrecordable(error)
        attempt.reached("job_record")
        for rank, child in zip(self.ranks, children, strict=True):
            attempt.mains[child.pid] = rank["rank"]
            child.release(self._plan(attempt, rank))
            attempt.reached("go")
        refusals = [
            self._refusal(attempt, rank, child)
            for rank, child in zip(self.ranks, children, strict=True)
        ]
        return next((refusal for refusal in refusals if refusal is not None), None)

    def _record(self, attempt: Attempt, children: list[Child]) -> None:
        attempt.started_at = time.time()
        attempt.started_clock = time.monotonic()
        for rank, child in zip(self.ranks, children, strict=True):
            attempt.journal.append("job", {"rank": rank["rank"], **attempt.identity_of(child)})

    def _plan(self, attempt: Attempt, rank: dict[str, Any]) -> dict[str, Any]:
        plan = attempt.plan()
        return {
            **plan,
            "env": {**plan["env"], **rank["env"]},
            "log": f"{attempt.folder}/{protocol.rank_log(rank['rank'])}",
        }

    def _refusal(self, attempt: Attempt, rank: dict[str, Any], child: Child) -> Refusal | None:
        failure = child.await_exec()
        if failure is None:
            return None
        os.waitpid(child.pid, 0)
        del attempt.mains[child.pid]
        return end_record.cause_of_failure(failure), {**failure, "rank": rank["rank"]}

    def ended(self, attempt: Attempt, info: os.waitid_result) -> bool:
        """A rank has ended and is not reaped yet; False if that cannot be recorded now, and it
        must not be reaped."""
        rank = attempt.mains[info.si_pid]
        if all(end.rank != rank for end in (*self._ends, *self._look)):
            status = end_record.status_of(info)
            end = gang_rule.RankEnd(rank, status["code"], status["signal"], time.monotonic())
            self._look.append(end)
        try:
            attempt.end.record_main(info)
        except OSError:
            self._unrecorded = True
            return False
        self._unrecorded = False
        del attempt.mains[info.si_pid]
        return True

    def looked(self) -> None:
        """Nothing more has ended for now."""
        self._ends += gang_rule.seen_together(self._look)
        self._look = []

    def step(self, attempt: Attempt, now: float) -> float:
        """End those that still run once the rule says so; when to come again."""
        if attempt.stop is not None:
            return now + _RETRY_S if self._unrecorded else _NEVER
        spec = attempt.spec
        verdict = gang_rule.decide(
            self._ends,
            len(self.ranks),
            now,
            float(spec.get("gang_grace_s", gang_rule.DEFAULT_GRACE_S)),
            float(spec.get("finish_skew_s", gang_rule.DEFAULT_SKEW_S)),
        )
        self._tell(attempt, verdict.due - now)
        if verdict.cause:
            grace_s = min(attempt.grace_s, attempt.leftover_grace_s)
            attempt.begin_stop(stopping.own_request(verdict.cause, grace_s))
            return _NEVER
        return min(verdict.due, now + _RETRY_S) if self._unrecorded else verdict.due

    def _tell(self, attempt: Attempt, grace_s: float) -> None:
        """The server hears of the first failure when it happens, not when the others are gone."""
        if not self._told and any(end.failed for end in self._ends):
            self._told = True
            attempt.host.news.send(
                "stopping", attempt.attempt_id, cause=gang_rule.FAILED, grace_s=max(0.0, grace_s)
            )

    def deciding(self) -> int | None:
        """The rank whose end is the attempt's."""
        self.looked()
        found = gang_rule.deciding(self._ends, len(self.ranks))
        return None if found is None else found.rank

    def bound_logs(self, attempt: Attempt) -> None:
        for rank in self.ranks:
            if rank["rank"]:
                log_bound.bound_named(attempt, protocol.rank_log(rank["rank"]))
