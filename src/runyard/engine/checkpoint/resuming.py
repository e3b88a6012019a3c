"""The checkpoint that a further attempt goes on from: chosen when it starts, after a last look."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from runyard.domain import events, job_environment
from runyard.domain.checkpoints import resuming
from runyard.domain.checkpoints.record import CheckpointRecord
from runyard.domain.events import Event
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt, Job
from runyard.domain.recovery.step import Resume, ResumeRule
from runyard.domain.states import AttemptEnd
from runyard.engine import job_dirs, server_log
from runyard.engine.checkpoint import checkpoint_listing
from runyard.engine.checkpoint.checkpointing import Checkpointing
from runyard.engine.history import read_marks
from runyard.engine.parts import Parts
from runyard.engine.recover import recovering
from runyard.stores.base import Reader

# Only a busy machine takes so long; a step that was saved is worth the wait.
_READ_S = 10.0  # until what the attempt before reported last is read
_LOOK_S = 10.0  # for hashing; what is not hashed by then counts by its format
_WAIT_S = 0.02
_MOST_TOLD = 5  # of those that were passed over
_ACTOR = "recovery"


def resume_from(reader: Reader, job: Job, attempts: Sequence[Attempt]) -> list[CheckpointRecord]:
    """Good checkpoints in the order they should be tried: as the plan of the attempt before says,
    and never one from before a person asked to begin anew."""
    spec = job.spec.checkpoint
    if spec is not None and spec.resume == "never":
        return []
    fresh = _fresh_since(reader, job)
    records = [one for one in reader.checkpoints(job.id) if one.saved_at >= fresh]
    # A training that went back must not go on from what it went back from.
    for attempt in attempts:
        records = resuming.untainted(records, attempt.number, _planned(attempt))
    started = [one for one in attempts if one.end is not AttemptEnd.NEVER_STARTED]
    return resuming.choose(records, _planned(started[-1]) if started else None)


class Resuming:
    def __init__(self, parts: Parts, checkpointing: Checkpointing) -> None:
        self._parts = parts
        self._checkpointing = checkpointing

    def may_resume(self, job: Job, attempt: Attempt) -> bool:
        """Whether it is worth a look; quick."""
        spec = job.spec.checkpoint
        if attempt.number < 2:
            return False
        if spec is not None:
            return spec.resume != "never"
        folder = job_dirs.checkpoint_dir(job, str(self._parts.settings.data_dir))
        if not checkpoint_listing.is_empty(folder):
            return True
        with self._parts.store.read() as reader:
            return bool(reader.checkpoints(job.id)) or self._unread(reader, job, attempt)

    def before_plan(self, attempt_id: str, diagnosis: Diagnosis) -> None:
        """A plan that goes back to a checkpoint must know which are good, those saved in the last
        seconds too. Never raises: an end is recorded whatever becomes of this."""
        if not recovering.counts_on_checkpoints(diagnosis):
            return
        try:
            with self._parts.store.read() as reader:
                attempt = reader.attempt(attempt_id)
                job = reader.job(attempt.job_id) if attempt is not None else None
            if job is not None:
                self._checkpointing.look(job, settle_s=0.0, seconds=_LOOK_S)
        except Exception as error:
            log = server_log.of(attempt_id.rpartition(".")[0], attempt_id)
            log.opt(exception=error).error("its checkpoints could not be looked at")

    def path(self, job: Job, attempt: Attempt) -> str | None:
        """The checkpoint this attempt is given, after a check of what the one before left. Takes
        a few seconds at most."""
        self._await_reports(job, attempt)
        self._checkpointing.look(job, settle_s=0.0, seconds=_LOOK_S)
        with self._parts.store.read() as reader:
            before = [one for one in reader.attempts(job.id) if one.number < attempt.number]
            found = resume_from(reader, job, before)
            known = reader.checkpoints(job.id)
        chosen = next((one for one in found if _is_there(one)), None)
        log = server_log.of(job.ref, attempt.attempt_id)
        if chosen is None:
            log.info("begins anew: there is no good checkpoint to go on from")
            return None
        log.info("goes on from {} (step {})", chosen.path, chosen.step)
        self._checkpointing.chosen[job.id] = chosen.path
        self._note(job, attempt, chosen, resuming.passed_over(known, chosen))
        return chosen.path

    def _await_reports(self, job: Job, attempt: Attempt) -> None:
        deadline = time.monotonic() + _READ_S
        while time.monotonic() < deadline:
            with self._parts.store.read() as reader:
                if not self._unread(reader, job, attempt):
                    return
            time.sleep(_WAIT_S)

    def _unread(self, reader: Reader, job: Job, attempt: Attempt) -> bool:
        """Whether the attempt before may have reported what nobody has read yet."""
        before = job.attempt_id(attempt.number - 1)
        run_dir = self._parts.settings.data_dir / "attempts" / before
        written = (run_dir / job_environment.METRICS_FILE).exists()
        return written and read_marks.is_unread(reader, before)

    def _note(
        self,
        job: Job,
        attempt: Attempt,
        chosen: CheckpointRecord,
        passed_over: Sequence[CheckpointRecord],
    ) -> None:
        told: dict[str, Any] = {"path": chosen.path, "step": chosen.step}
        told["attempt"] = chosen.attempt
        if passed_over:
            told["passed_over"] = [
                {
                    "path": one.path,
                    "step": one.step,
                    "why": None if one.why is None else one.why.code,
                }
                for one in passed_over[:_MOST_TOLD]
            ]
        at = self._parts.clock()
        event = Event(events.CHECKPOINT_CHOSEN, at, _ACTOR, attempt.attempt_id, told)
        self._parts.store.write_soon(lambda tx: tx.append_event(job.id, event), durable=False)


def _planned(attempt: Attempt) -> Resume:
    """As the plan says that was made when this attempt ended."""
    told = (attempt.plan or {}).get("resume")
    if not isinstance(told, dict):
        return Resume()
    return Resume(
        rule=ResumeRule(told.get("rule", ResumeRule.NEWEST_GOOD)),
        step=told.get("step"),
        back=told.get("back", 0),
        excluding=tuple(told.get("excluding", ())),
    )


def _fresh_since(reader: Reader, job: Job) -> float:
    """When a person last asked for the job without its checkpoints."""
    since, after = 0.0, 0
    while True:
        page = reader.events(job.id, after=after)
        for one in page:
            if one.event.code == events.JOB_RETRIED and one.event.params.get("fresh"):
                since = one.event.at
        if len(page) < 1000:
            return since
        after = page[-1].id


def _is_there(record: CheckpointRecord) -> bool:
    """Still as it was when it was checked, a moment ago."""
    try:
        told = os.stat(record.path)
    except OSError:
        return os.path.exists(record.path + ".index")  # TensorFlow names what files begin with
    return os.path.isdir(record.path) or told.st_size == record.size_bytes
