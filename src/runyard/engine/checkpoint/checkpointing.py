"""The registry of checkpoints: found and reported ones are checked, while attempts run and when
they end; old good ones go where a job says how many it wants to keep."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from runyard.domain import events
from runyard.domain.checkpoints import keeping, listing
from runyard.domain.checkpoints.listing import Found
from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.job import Job
from runyard.domain.progress.point import Checkpoint
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptStatus
from runyard.engine import job_dirs, server_log
from runyard.engine.checkpoint import checkpoint_listing
from runyard.engine.loop import Loop
from runyard.engine.parts import Parts
from runyard.probes.base import CheckedCheckpoint
from runyard.stores.base import Transaction

EVERY_S = 30.0
SETTLE_S = 5.0  # what a running attempt wrote to just now may not be finished
LOOK_S = 60.0  # for hashing, at each look at a job
MOST_AT_ONCE = 100  # checks of one job at one look, the newest first
MOST_ROWS = 1000  # of one job; of more, those that are gone are forgotten
_MOST_REPORTED = 10_000  # that wait to be written down
_SAME_TIME_S = 0.001


@dataclass(frozen=True, slots=True)
class _Seen:
    """A checkpoint that is there now; `found` is None where only the program told of it."""

    path: str
    found: Found | None
    told: Checkpoint | None


class Checkpointing:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._looks: dict[int, threading.Lock] = {}
        self._ended: set[int] = set()
        self._due = 0.0  # the next look at all that run
        self.chosen: dict[int, str] = {}  # by job: what its newest attempt goes on from
        self._reported: dict[int, dict[str, tuple[int, Checkpoint]]] = {}
        self._loop = Loop("checkpoints", self._tick, EVERY_S)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def reported(self, job_id: int, attempt: int, told: Checkpoint) -> None:
        """A training said that it saved itself."""
        with self._lock:
            waiting = self._reported.setdefault(job_id, {})
            if len(waiting) < _MOST_REPORTED:
                waiting[os.path.normpath(told.path)] = attempt, told
        self._loop.wake()

    def ended(self, job_id: int) -> None:
        """An attempt of it ended, which may have saved itself to the last."""
        self.chosen.pop(job_id, None)
        with self._lock:
            self._ended.add(job_id)
        self._loop.wake()

    def _tick(self) -> float | None:
        with self._lock:
            ended, self._ended = self._ended, set()
            told = set(self._reported)
        regular = time.monotonic() >= self._due
        if regular:
            self._due = time.monotonic() + EVERY_S
        with self._parts.store.read() as reader:
            live = {one.job_id for one in reader.live_attempts(self._parts.node_id)}
            wanted = ended | told | live if regular else ended | told
            jobs = reader.jobs_by_id(sorted(wanted))
            known = {job.id for job in jobs if job.id in told or reader.checkpoints(job.id)}
        for job in jobs:
            if job.id not in known and self._is_empty(job):
                continue
            try:
                self.look(job, settle_s=SETTLE_S if job.id in live else 0.0)
            except OSError as error:
                server_log.of(job.ref).error("its checkpoints could not be looked at: {}", error)
        time.sleep(0.05)  # ends may come by the thousand
        return max(0.0, self._due - time.monotonic())

    def _is_empty(self, job: Job) -> bool:
        folder = job_dirs.checkpoint_dir(job, str(self._parts.settings.data_dir))
        return checkpoint_listing.is_empty(folder)

    # one job

    def look(self, job: Job, *, settle_s: float, seconds: float = LOOK_S) -> None:
        """Bring what is known of the job's checkpoints up to date. `settle_s` is 0 when nothing
        of it runs: then nobody writes any more."""
        if job.attempt_number == 0:
            return
        data_dir = str(self._parts.settings.data_dir)
        with self._lock:
            said = self._reported.pop(job.id, {})
            own = self._looks.setdefault(job.id, threading.Lock())
        told = {job_dirs.outside(job, path, data_dir): one for path, one in said.items()}
        with own:
            self._look(job, told, settle_s, seconds)
        with self._lock:
            if job.id in self._looks and not own.locked():
                del self._looks[job.id]

    def _look(
        self, job: Job, told: dict[str, tuple[int, Checkpoint]], settle_s: float, seconds: float
    ) -> None:
        folder = job_dirs.checkpoint_dir(job, str(self._parts.settings.data_dir))
        found = self._found(job, folder)
        with self._parts.store.read() as reader:
            known = {one.path: one for one in reader.checkpoints(job.id)}
        if not found and not told and not known:
            return
        changed: dict[str, CheckpointRecord] = {}
        for path, (attempt, said) in told.items():
            row = known.get(path) or _unseen(job.id, attempt, path, said.at)
            step = said.step if said.step is not None else row.step
            metrics = dict(said.values)
            changed[path] = replace(
                row, attempt=attempt, reported=True, step=step, metrics=metrics
            )
        for path, one in found.items():
            if path not in changed and path not in known:
                changed[path] = replace(
                    _unseen(job.id, job.attempt_number, path, one.mtime),
                    family=one.kind.value,
                    step=one.step,
                    size_bytes=one.size,
                )
        rows = {**known, **changed}
        due = [row for row in rows.values() if _needs_check(row, found.get(row.path))]
        checked = self._check(due, settle_s, seconds)
        for row in due:
            if row.path in checked:
                kind = found[row.path].kind.value if row.path in found else None
                changed[row.path] = self._judged(row, checked[row.path], kind, job)
        self._write(job, known, changed)
        if job.spec.checkpoint is not None and job.spec.checkpoint.keep is not None:
            self._retain(job, folder, found, {**rows, **changed}.values())

    def _found(self, job: Job, folder: str) -> dict[str, Found]:
        files = checkpoint_listing.listed(folder)
        pattern = job.spec.checkpoint.pattern if job.spec.checkpoint else None
        return {os.path.join(folder, one.path): one for one in listing.find(files, pattern)}

    def _check(
        self, due: Sequence[CheckpointRecord], settle_s: float, seconds: float
    ) -> dict[str, CheckedCheckpoint]:
        check = self._parts.checkpoint_check
        if check is None or not due:
            return {}
        newest = sorted(due, key=lambda row: row.saved_at, reverse=True)[:MOST_AT_ONCE]
        told = check.check([row.path for row in newest], seconds=seconds, settle_s=settle_s)
        return {one.path: one for one in told}

    def _judged(
        self, row: CheckpointRecord, checked: CheckedCheckpoint, kind: str | None, job: Job
    ) -> CheckpointRecord:
        verdict = CheckpointVerdict(checked.verdict)
        why = checked.why
        if verdict is CheckpointVerdict.BAD and row.verdict is not verdict:
            log = server_log.of(job.ref, job.attempt_id(row.attempt))
            log.warning("checkpoint {} is not whole: {}", row.path, (why or {}).get("code"))
        gone = verdict is CheckpointVerdict.GONE
        rewritten = row.checked_at is not None and checked.saved_at > row.saved_at + _SAME_TIME_S
        return replace(
            row,
            attempt=job.attempt_number if rewritten else row.attempt,
            family=kind or checked.family or row.family,
            step=row.step if row.step is not None else checked.step,
            size_bytes=row.size_bytes if gone else checked.size_bytes,
            saved_at=row.saved_at if gone else checked.saved_at,
            verdict=verdict,
            why=None if why is None else Reason(str(why["code"]), dict(why["params"])),
            checked_at=self._parts.clock(),
        )

    def _write(
        self,
        job: Job,
        known: dict[str, CheckpointRecord],
        changed: dict[str, CheckpointRecord],
    ) -> None:
        different = [row for path, row in changed.items() if known.get(path) != row]
        over = len(known.keys() | changed.keys()) - MOST_ROWS
        gone = [row for row in known.values() if row.verdict is CheckpointVerdict.GONE]
        forgotten = gone[: max(0, over)]
        if not different and not forgotten:
            return

        def work(tx: Transaction) -> None:
            if tx.job(job.id) is not None:
                tx.put_checkpoints(different)
                for row in forgotten:
                    tx.delete_checkpoint(row.id)

        self._parts.store.write(work, durable=False)

    def _in_use(self, job: Job) -> list[str]:
        """What its newest attempt went on from, or is about to: it may read it at any time."""
        with self._parts.store.read() as reader:
            attempt = reader.attempt(job.attempt_id())
            if attempt is None or attempt.status is AttemptStatus.ENDED:
                return []
            chosen = [
                str(one.event.params["path"])
                for one in reader.events(job.id)
                if one.event.code == events.CHECKPOINT_CHOSEN
                and one.event.attempt_id == attempt.attempt_id
            ]
        return [*chosen, *filter(None, [self.chosen.get(job.id)])]

    def _retain(
        self, job: Job, folder: str, found: dict[str, Found], rows: Iterable[CheckpointRecord]
    ) -> None:
        spec = job.spec.checkpoint
        assert spec is not None
        assert spec.keep is not None
        removed = []
        used = self._in_use(job)
        running = job.attempt_number
        for row in keeping.superfluous(list(rows), spec.keep, running, used):
            one = found.get(row.path)
            if one is not None and checkpoint_listing.remove(folder, one):
                server_log.of(job.ref).info(
                    "checkpoint {} removed: {} are kept", row.path, spec.keep
                )
                why = Reason("not_kept", {"keep": spec.keep})
                removed.append(replace(row, verdict=CheckpointVerdict.GONE, why=why))
        if removed:
            self._parts.store.write(lambda tx: tx.put_checkpoints(removed), durable=False)


def _unseen(job_id: int, attempt: int, path: str, at: float) -> CheckpointRecord:
    return CheckpointRecord(job_id, attempt, path, "file", 0, at)


def _needs_check(row: CheckpointRecord, found: Found | None) -> bool:
    """What was checked is checked again when something of it was written since; what is gone
    stays so until it is seen again."""
    if found is not None:
        if row.verdict is CheckpointVerdict.GONE or row.checked_at is None:
            return True
        changed = found.mtime > row.saved_at + _SAME_TIME_S
        return changed or _is_open(row)
    if row.verdict is CheckpointVerdict.GONE:
        return False
    if row.checked_at is None or _is_open(row):
        return True
    try:
        told = os.stat(row.path)
    except OSError:
        return True  # gone, or named by what its files begin with
    return told.st_mtime > row.saved_at + _SAME_TIME_S


def _is_open(row: CheckpointRecord) -> bool:
    return (
        row.verdict is CheckpointVerdict.UNKNOWN
        and row.why is not None
        and row.why.code == "being_written"
    )
