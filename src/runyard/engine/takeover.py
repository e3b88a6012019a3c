"""Servers of one database that reach the same cluster go on for each other.

What runs on a cluster outlives the server that started it. When that server has been silent for
longer than its lease, another one that reaches the cluster becomes the owner of its attempts:
under the lock of placement, with the database's clock, and only as long as nothing was heard of
the silent one. That one learns of it by its epoch and leaves them alone when it comes back.
"""

from __future__ import annotations

from runyard.domain import events
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job
from runyard.domain.states import WAITING, AttemptStatus
from runyard.engine import server_log
from runyard.engine.parts import Parts
from runyard.engine.schedule import readiness
from runyard.stores.base import Transaction
from runyard.stores.base_machines import Node

_ACTOR = "takeover"
_LOST = "supervisor_lost"  # as of a preparation that died with its machine


class Takeover:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def look(self) -> list[Attempt]:
        """Own from now on what silent servers ran where this one reaches it too, and let waiting
        jobs be prepared anew whose files are on the disk of a silent one."""
        if not self._parts.store.shared or not self._may_be_needed():
            return []
        taken, waiting = self._parts.store.write(self._take, exclusive=True)
        for attempt in taken:
            log = server_log.of(attempt.attempt_id.rpartition(".")[0], attempt.attempt_id)
            log.warning("taken over from {}, which is silent", attempt.node_id)
        for job in waiting:
            server_log.of(job.ref).warning("prepared anew: what was fetched is on a silent server")
        return taken

    def _reached(self) -> set[tuple[str, str]]:
        """(executor, cluster) that can be reached now."""
        offered = self._parts.machine.offered
        return {(node.kind, node.cluster) for node in offered if node.cluster and node.executors}

    def _may_be_needed(self) -> bool:
        """A read, so that the lock is taken only where there is something to do."""
        with self._parts.store.read() as reader:
            silent = self._silent(reader.nodes())
            if not silent:
                return False
            if reader.prepared_elsewhere(self._parts.node_id):
                return True
            return any(self._is_ours(a) for n in silent for a in reader.live_attempts(n.node_id))

    def _silent(self, nodes: list[Node]) -> list[Node]:
        since = self._parts.store.now() - self._parts.settings.server_lease_s
        own = self._parts.node_id
        return [n for n in nodes if n.is_server and n.node_id != own and n.heartbeat_at < since]

    def _is_ours(self, attempt: Attempt) -> bool:
        reached = self._reached()
        return bool(attempt.slices) and all(
            (attempt.executor, part.cluster) in reached for part in attempt.slices
        )

    def _take(self, tx: Transaction) -> tuple[list[Attempt], list[Job]]:
        now, own = self._parts.clock(), self._parts.node_id
        silent = self._silent(tx.nodes())
        waiting = self._prepare_anew(tx, {node.node_id for node in silent}, now)
        taken: list[Attempt] = []
        for node in silent:
            living = [one for one in tx.live_attempts(node.node_id) if self._is_ours(one)]
            if not living or not tx.depose_node(node.node_id, node.heartbeat_at):
                continue
            for attempt in living:
                if tx.take_over(attempt.attempt_id, node.node_id, own):
                    told = {"from": node.node_id, "to": own, "attempt": attempt.number}
                    event = Event(events.JOB_TAKEN_OVER, now, _ACTOR, attempt.attempt_id, told)
                    tx.append_event(attempt.job_id, event)
                    taken.append(attempt)
        return taken, waiting

    def _prepare_anew(self, tx: Transaction, silent: set[str], now: float) -> list[Job]:
        """Only where the preparation has ended: one that may still run there is not given up, as
        nobody could prove it gone."""
        ended = frozenset({AttemptStatus.ENDED})
        found = []
        for job in tx.jobs_by_id(list(tx.prepared_elsewhere(self._parts.node_id))):
            made = [one for one in tx.preparations(job.id) if one.succeeded]
            lost = [one for one in made if one.node_id in silent]
            if not lost or len(lost) < len(made):
                continue
            for one in lost:
                changes = {"exit_code": None, "cause": _LOST}
                tx.update_preparation(one.preparation_id, ended, **changes)
            ready, reason = readiness.refresh(tx, job, hold=job.hold, now=now)
            tx.update_job(job.id, WAITING, ready=ready, reason=reason)
            found.append(job)
        return found
