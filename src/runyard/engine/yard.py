"""The yard: everything people can ask of a running server, and the loops that keep it going.

Synchronous; every call may touch the store. Errors are those of domain/errors.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from runyard import __version__
from runyard.domain import errors, events, preparation
from runyard.domain.checkpoints.record import CheckpointRecord
from runyard.domain.events import Event, StoredEvent
from runyard.domain.job import Attempt, Job, Priority, Submission
from runyard.domain.peaks import Suggestion
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.access.keys import Keys
from runyard.engine.access.logins import SESSION_PREFIX, Logins
from runyard.engine.commands import Commands, find
from runyard.engine.drill.drill_divergence import Divergence
from runyard.engine.drill.drilling import Drills
from runyard.engine.end import receipts
from runyard.engine.launch import launch_plan
from runyard.engine.node.machines import GpuView, Machines
from runyard.engine.notify.notifying import NotificationDesk
from runyard.engine.notify.outbox import Outbox
from runyard.engine.parts import Parts
from runyard.engine.read import explaining, output_files, service_states
from runyard.engine.read.live_reads import LiveReads
from runyard.engine.read.log_places import LogPlaces
from runyard.engine.read.output_files import OutputFiles
from runyard.engine.read.overview import JobNow, Overview, Overviews
from runyard.engine.read.page_reads import PageReads
from runyard.engine.read.views import JobView, QueueStatus, Views
from runyard.engine.reconcile import Found
from runyard.engine.recover import failure_story
from runyard.engine.recover.recovery_desk import Analysis, RecoveryDesk
from runyard.engine.runtime import Runtime
from runyard.engine.schedule.placing import PAUSED_FLAG
from runyard.engine.submit.dataset_desk import DatasetDesk
from runyard.engine.submit.previewing import Previews
from runyard.engine.submit.submitting import Idempotency, Submitter
from runyard.engine.watch import evidence, watchers
from runyard.engine.watch.alerting import AlertDesk
from runyard.engine.watch.evidence import EvidenceFile
from runyard.engine.watch.rule_desk import RuleDesk
from runyard.stores.base import JobFilter, JobPage, Key, Lease, Transaction
from runyard.stores.base_machines import Node
from runyard.stores.base_metrics import MetricRange, Series


class Yard:
    """`open` and `close` are its life; all else may be called in between, from any thread."""

    def __init__(self, parts: Parts, tag_of: Callable[[int], int | None]) -> None:
        self._parts = parts
        self.hub = parts.hub
        self.board = parts.board
        self.settings = parts.settings
        self._commands = Commands(parts)
        self._views = Views(parts)
        self.live = LiveReads(parts, self._views)
        self._log_places = LogPlaces(parts)
        self._machines = Machines(parts)
        self.runtime = Runtime(parts, self._commands, self._machines, tag_of)
        self._submitter = Submitter(
            parts,
            self.runtime.placer,
            self.runtime.launcher,
            self.runtime.wake,
            self.runtime.prepare,
            self.runtime.leased,
        )
        self.drills = Drills(
            parts,
            self._submitter,
            self.runtime.checkpointing,
            Divergence(parts, self._commands),
            tag_of,
        )
        self._overviews = Overviews(
            parts, self._views, self._machines, self.runtime.metric_history
        )
        peaks = self.runtime.peak_keeping
        self.pages = PageReads(
            parts,
            self._views,
            self.runtime.metric_history,
            Previews(parts, self._submitter, self.runtime.placer, peaks),
        )
        self.tallies = parts.tallies
        self.node_id = parts.node_id
        self.alert_desk = AlertDesk(parts)
        self.outbox = Outbox(parts)
        parts.store.before_commit(self.outbox.note)
        parts.store.subscribe(self.outbox.heard)
        self.notifications = NotificationDesk(parts, self.outbox)
        self.rule_desk = RuleDesk(parts)
        self.dataset_desk = DatasetDesk(parts)
        self.recovery = RecoveryDesk(parts, self._commands)
        self.runtime.ender.repaired = self.outbox.repaired
        self.key_ring = Keys(parts)
        self.logins = Logins(parts)

    def open(self) -> Found:
        """Adopt what lives, then begin to place jobs."""
        return self.runtime.open()

    def close(self, *, keep: bool) -> None:
        """Stop working; what still runs is left to the next start."""
        self.runtime.close(keep=keep)

    # jobs

    def submit(
        self,
        submissions: Sequence[Submission],
        actor: Actor,
        idempotency: Idempotency | None = None,
    ) -> list[Job]:
        """All or none. A repeated idempotency key answers with the jobs of the first request."""
        if self.runtime.shutting_down:
            raise errors.ShuttingDown()
        return self._submitter.submit(submissions, actor, idempotency)

    def submit_soon(
        self,
        submissions: Sequence[Submission],
        actor: Actor,
        idempotency: Idempotency | None = None,
    ) -> Future[list[Job]]:
        """The same without waiting for the commit."""
        if self.runtime.shutting_down:
            raise errors.ShuttingDown()
        return self._submitter.submit_soon(submissions, actor, idempotency)

    def job(self, ref: str) -> JobView:
        return self._views.job(ref)

    def jobs(
        self,
        chosen: JobFilter,
        limit: int,
        cursor: str | None,
        order: str = "-submitted",
        *,
        curves: bool = False,
    ) -> tuple[JobPage, list[JobView]]:
        """The views of a page hold reason and attempt, but no position and no estimate; with
        `curves`, the main metric."""
        return self._views.jobs(chosen, limit, cursor, order, curves=curves)

    def attempts(self, ref: str) -> list[Attempt]:
        with self._parts.store.read() as reader:
            return reader.attempts(find(reader, ref).id)

    def attempts_and_services(self, ref: str) -> list[tuple[Attempt, list[dict[str, Any]]]]:
        """Each attempt with its services as they are now."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            found = reader.attempts(job.id)
        return [(one, service_states.of_attempt(self._parts, job, one)) for one in found]

    def events(self, ref: str, after: int = 0, limit: int = 1000) -> list[StoredEvent]:
        with self._parts.store.read() as reader:
            return reader.events(find(reader, ref).id, after=after, limit=limit)

    def checkpoints(self, ref: str) -> list[CheckpointRecord]:
        """In the order they were saved."""
        with self._parts.store.read() as reader:
            return reader.checkpoints(find(reader, ref).id)

    def files(self, ref: str) -> OutputFiles:
        """What is in the job's output directory on this machine."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
        return output_files.of_job(job, str(self.settings.data_dir))

    def suggestion(self, job: Job) -> Suggestion | None:
        """What earlier runs of the same job used."""
        return self.runtime.peak_keeping.suggestion(job)

    def metrics(
        self, ref: str, names: Sequence[str] | None, most: int, chosen: MetricRange
    ) -> dict[str, Series]:
        """At most `most` samples of each series; of all series when none is named."""
        self._parts.board.watchers.watch(watchers.SYSTEM)
        return self.runtime.metric_history.series(ref, names, most, chosen)

    def receipt(self, ref: str) -> dict[str, Any]:
        """Of the newest end; NotFound before the first one."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            found = receipts.newest(reader, job)
        if found is not None:
            return found
        raise errors.NotFound(f"Job {job.ref} has no receipt yet: it has not ended.", job=job.ref)

    def explain(self, ref: str) -> dict[str, Any]:
        """Waiting: reason, place, blockers. Ended: reason, cause, the last lines of its log."""
        view = self._views.job(ref)
        service = explaining.failed_service(view)
        path, _ = self.log_path(ref, service=service) if view.attempt else ("", True)
        places = launch_plan.places_of(self._parts.settings, view.job)
        with self._parts.store.read() as reader:
            known = failure_story.read(reader, view.job, places)
        told = {**explaining.explain(view, path), **failure_story.of(view.job, known)}
        return {**told, "evidence": evidence.by_attempt(self._parts, known.attempts)}

    def cancel(self, ref: str, actor: Actor, *, force: bool = False) -> Job:
        """Ask for the end and return the job as it is then: cancelled, or cancelling. Asking again
        is no error; AlreadyEnded when it completed or failed."""
        job = self._commands.cancel(ref, actor, force=force)
        self.runtime.wake()
        return job

    def renew(self, ref: str, actor: Actor) -> tuple[Job, Lease]:
        """The job's client lives; NoLease when it was submitted without one."""
        return self.runtime.leases.renew(ref, actor)

    def retry(self, ref: str, actor: Actor, *, fresh: bool = False) -> Job:
        return self._and_wake(self._commands.retry(ref, actor, fresh=fresh))

    def recover(
        self, ref: str, actor: Actor, *, dry_run: bool = False, delays: Sequence[float] = ()
    ) -> Analysis:
        """Start a failed job again by its plan; `recovery.analyze` only tells it."""
        found = self.recovery.attempt(ref, actor, dry_run=dry_run, delays=delays)
        if not dry_run:
            self._and_wake(found.job)
        return found

    def hold(self, ref: str, actor: Actor) -> Job:
        return self._and_wake(self._commands.hold(ref, actor))

    def release(self, ref: str, actor: Actor) -> Job:
        return self._and_wake(self._commands.release(ref, actor))

    def enqueue(self, ref: str, actor: Actor, priority: Priority | None = None) -> Job:
        """Release a hold and set the priority; AlreadyEnded on an ended job."""
        return self._and_wake(self._commands.enqueue(ref, actor, priority))

    def delete(self, ref: str, actor: Actor) -> None:
        """Record, folders and logs of an ended job; NotEnded otherwise."""
        self._commands.delete(ref, actor)

    def log_path(
        self, ref: str, attempt: int | None = None, rank: int = 0, service: str = ""
    ) -> tuple[str, bool]:
        """The log file of an attempt (the newest by default) or of a service of it, and whether it
        can still grow."""
        return self._log_places.path(ref, attempt, rank, service)

    def node_url_of(self, ref: str, attempt: int | None = None) -> str | None:
        """The URL of the server that owns the attempt; None when it is this one."""
        return self._log_places.url(ref, attempt)

    def evidence(self, ref: str, number: int) -> list[EvidenceFile]:
        """What was saved with an attempt when something was wrong with it."""
        return evidence.listed(self._evidence_of(ref, number))

    def open_evidence(self, ref: str, number: int, name: str) -> int | None:
        """A file descriptor of one of those, which the caller closes."""
        return evidence.opened(self._evidence_of(ref, number), name)

    def _evidence_of(self, ref: str, number: int) -> Path:
        with self._parts.store.read() as reader:
            attempt = reader.attempt(find(reader, ref).attempt_id(number))
        if attempt is None:
            raise errors.NotFound(f"There is no attempt {number}.", attempt=number)
        return evidence.folder_of(self._parts, attempt.attempt_id)

    # monitor

    def overview(self, *, looking: bool = True) -> Overview:
        return self._overviews.now(looking=looking)

    def job_now(self, ref: str) -> JobNow:
        """Everything known of one job now."""
        return self._overviews.job(ref)

    def history(
        self,
        *,
        job: str | None,
        node: str | None,
        names: Sequence[str] | None,
        most: int,
        chosen: MetricRange,
    ) -> dict[str, Series]:
        """At most `most` samples of each series of a job or of a node (this one by default)."""
        return self._overviews.history(job=job, node=node, names=names, most=most, chosen=chosen)

    # queue and machines

    def queue_status(self, limit: int = 100) -> QueueStatus:
        return self._views.queue(limit)

    def start_queue(self, actor: Actor) -> None:
        self._set_dispatching(True, actor)

    def stop_queue(self, actor: Actor) -> None:
        self._set_dispatching(False, actor)

    def nodes(self) -> list[Node]:
        return self._machines.nodes()

    def drain(self, node: str, actor: Actor) -> Node:
        return self._machines.set_drained(node, True, actor)

    def undrain(self, node: str, actor: Actor) -> Node:
        changed = self._machines.set_drained(node, False, actor)
        self.runtime.wake()
        return changed

    def gpus(self) -> list[GpuView]:
        return self._machines.gpus()

    def fence(self, gpu: str, reason: str, actor: Actor) -> GpuView:
        """`gpu` is an index of this node or a uuid."""
        return self._machines.fence(gpu, reason, actor)

    def unfence(self, gpu: str, actor: Actor) -> GpuView:
        view = self._machines.unfence(gpu, actor)
        self.runtime.wake()
        return view

    # keys

    def authenticate(self, secret: str) -> Actor | None:
        """None for a key, or a browser's session, that is unknown, revoked or expired."""
        if secret.startswith(SESSION_PREFIX):
            return self.logins.authenticate(secret)
        return self.key_ring.authenticate(secret)

    def keys(self) -> list[Key]:
        return self.key_ring.all()

    def create_key(
        self, name: str, role: str, actor: Actor, expires_at: float | None = None
    ) -> tuple[Key, str]:
        """The key and its secret, which is never shown again."""
        actor.must_be_admin()
        return self.key_ring.create(name, role, expires_at=expires_at)

    def revoke_key(self, key_id: int, actor: Actor) -> None:
        actor.must_be_admin()
        self.key_ring.revoke(key_id)

    # system

    def health(self) -> dict[str, Any]:
        """ok is False when jobs cannot be started."""
        usable = self._parts.machine.usable_executors()
        with self._parts.store.read() as reader:
            dispatching = reader.flag(PAUSED_FLAG) is None
        running = self.runtime.running and not self.runtime.shutting_down
        return {
            "ok": bool(usable) and running,
            "version": __version__,
            "store": "shared" if self._parts.store.shared else "local",
            "executors": {name: name in usable for name in self._parts.executors},
            "dispatching": dispatching,
        }

    def _and_wake(self, job: Job) -> Job:
        self.runtime.wake()
        if preparation.needed(job.spec):
            self.runtime.prepare()
        return job

    def _set_dispatching(self, on: bool, actor: Actor) -> None:
        actor.must_be_admin()
        now = self._parts.clock()
        code = events.QUEUE_STARTED if on else events.QUEUE_STOPPED

        def work(tx: Transaction) -> None:
            tx.set_flag(PAUSED_FLAG, None if on else actor.name)
            tx.append_event(None, Event(code, now, actor.name))

        self._parts.store.write(work)
        server_log.of().info("dispatching {} by {}", "started" if on else "paused", actor.name)
        self.runtime.wake()
