"""Fire drills: a throwaway clone of a job, and a fault that is done to it while it runs.

A fault is done to processes that are proven to belong to the clone's attempt, or to a checkpoint
that the clone itself has saved, and to nothing else.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runyard.domain import errors, events, states
from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.drills import FAULTS
from runyard.domain.events import Event
from runyard.domain.job import Attempt, Job, JobSpec, Submission, Wanted
from runyard.domain.states import AttemptStatus, JobStatus
from runyard.engine import server_log
from runyard.engine.access.actor import Actor
from runyard.engine.checkpoint.checkpointing import Checkpointing
from runyard.engine.commands import find
from runyard.engine.drill import drill_faults
from runyard.engine.drill.drill_divergence import Divergence
from runyard.engine.parts import Parts
from runyard.engine.submit.submitting import Submitter

OF_LABEL = "drill_of"
_LONGEST_NAME = 200
_RETRIES = 3
_RETRY_DELAYS = (1.0,)
_LOOK_S = 4.0  # for hashing checkpoints
_ANSWERED_S = 0.5  # until the one who asked has the answer of a server that is to die


class Drills:
    def __init__(
        self,
        parts: Parts,
        submitter: Submitter,
        checkpointing: Checkpointing,
        divergence: Divergence,
        tag_of: Callable[[int], int | None],
    ) -> None:
        self._parts = parts
        self._submitter = submitter
        self._checkpointing = checkpointing
        self._divergence = divergence
        self._tag_of = tag_of
        # How this server is started again; () where it is a part of another program.
        self.comes_back_by: tuple[str, ...] = ()

    def start(self, ref: str, fault: str, actor: Actor) -> Job:
        """Submit the clone; the fault is done later, by `strike`."""
        self._check_available(fault, actor)
        with self._parts.store.read() as reader:
            job = find(reader, ref)
        actor.must_own(job)
        [clone] = self._submitter.submit([_clone_of(job, fault)], actor, None)
        server_log.of(clone.ref).info("drill asked by {}: {} of {}", actor.name, fault, job.ref)
        return clone

    def strike(self, ref: str, actor: Actor) -> dict[str, Any]:
        """Do the fault to the running clone. Conflict while it is too early, or not a clone."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            attempt = reader.attempt(job.attempt_id()) if job.attempt_number else None
        actor.must_own(job)
        fault = job.spec.labels.get(drill_faults.LABEL, "")
        if fault == "server":
            self._check_available(fault, actor)
        if fault not in FAULTS or OF_LABEL not in job.spec.labels:
            raise errors.Conflict(f"Job {job.ref} is no drill.", job=job.ref)
        if job.status in states.ENDED:
            raise errors.AlreadyEnded(job=job.ref, status=job.status.value)
        if not self._is_up(job, attempt):
            raise errors.DrillTooEarly(job=job.ref, waits_for="start")
        assert attempt is not None
        done = self._do(fault, job, attempt)
        at = self._parts.clock()
        told = {"fault": fault, "attempt": attempt.number, "progress": job.progress, **done}
        event = Event(events.DRILL_FAULT, at, actor.name, attempt.attempt_id, told)
        self._parts.store.write(lambda tx: tx.append_event(job.id, event))
        server_log.of(job.ref, attempt.attempt_id).warning("drill fault done: {} {}", fault, done)
        if fault == "server":
            self._die_soon()
        return {"job_id": job.ref, "at": at, **told}

    def _check_available(self, fault: str, actor: Actor) -> None:
        if fault not in FAULTS:
            raise errors.DrillNotAvailable(fault=fault, faults=", ".join(FAULTS))
        if fault == "server" and not self.comes_back_by:
            raise errors.DrillServerStays()
        if fault == "server":
            actor.must_be_admin()  # everybody's server dies

    def _die_soon(self) -> None:
        die = functools.partial(drill_faults.die_and_come_back, self.comes_back_by)
        timer = threading.Timer(_ANSWERED_S, die)
        timer.daemon = True
        timer.start()

    def _is_up(self, job: Job, attempt: Attempt | None) -> bool:
        return (
            job.status is JobStatus.RUNNING
            and attempt is not None
            and attempt.status is AttemptStatus.RUNNING
            and attempt.node_id == self._parts.node_id
        )

    def _do(self, fault: str, job: Job, attempt: Attempt) -> dict[str, Any]:
        folder = self._parts.settings.data_dir / "attempts" / attempt.attempt_id

        def belongs(pid: int) -> bool:
            return self._tag_of(pid) == attempt.tag

        if fault == "server":
            pid = drill_faults.main_pid(str(folder))
            if pid is None:
                raise errors.DrillTooEarly(job=job.ref, waits_for="start")
            return {"pid": pid}
        if fault == "nan":
            return self._divergence.begin(job, attempt, belongs, self._good_step(job, attempt))
        if fault == "hang":
            return {"processes": drill_faults.freeze(belongs)}
        if fault == "oom":
            return {"processes": drill_faults.take_memory(belongs)}
        if fault == "disk":
            log = self._parts.executors[attempt.executor].log_path(attempt.attempt_id)
            return {"processes": drill_faults.take_disk(belongs, log)}
        done: dict[str, Any] = {}
        if fault == "corrupt":
            newest = self._newest_good(job, attempt)
            done = {"path": drill_faults.truncate(newest.path), "step": newest.step}
        if not drill_faults.kill_main(str(folder)):
            raise errors.DrillTooEarly(job=job.ref, waits_for="start")
        return done

    def _newest_good(self, job: Job, attempt: Attempt) -> CheckpointRecord:
        """Of the clone itself, and not the only one: there must be something to go back to."""
        good = self._good(job, attempt)
        if len(good) < 2:
            raise errors.DrillTooEarly(job=job.ref, waits_for="second checkpoint")
        return max(good, key=lambda one: one.saved_at)

    def _good_step(self, job: Job, attempt: Attempt) -> int:
        """Of a checkpoint that it can go back to."""
        steps = [one.step for one in self._good(job, attempt) if one.step is not None]
        if not steps:
            raise errors.DrillTooEarly(job=job.ref, waits_for="first checkpoint")
        return min(steps)

    def _good(self, job: Job, attempt: Attempt) -> list[CheckpointRecord]:
        self._checkpointing.look(job, settle_s=0.0, seconds=_LOOK_S)
        with self._parts.store.read() as reader:
            return [
                one
                for one in reader.checkpoints(job.id)
                if one.verdict is CheckpointVerdict.GOOD and one.attempt == attempt.number
            ]


def _clone_of(job: Job, fault: str) -> Submission:
    """The same program with places of its own; it tells nobody, and tries again soon."""
    spec, request = job.spec, job.spec.request
    return Submission(
        spec=replace(
            spec,
            name=f"drill {fault}: {spec.name}"[:_LONGEST_NAME],
            labels={**spec.labels, drill_faults.LABEL: fault, OF_LABEL: job.ref},
            output_path=None,
            checkpoint=_own_checkpoints(spec),
            retry_delays=_RETRY_DELAYS,
            notify=(),
            lease=None,
            array=None,
        ),
        wanted=Wanted(
            cpu_cores=request.cpu_milli / 1000,
            memory_gb=request.memory_mb / 1024 if spec.memory_asked else None,
            gpu_count=request.gpu_milli / 1000,
            gpu_type=request.gpu_type,
            port_count=request.port_count,
        ),
        priority=job.priority,
        max_retries=_RETRIES,
        grace_s=spec.grace_s,
    )


def _own_checkpoints(spec: JobSpec) -> Any:
    """Never in the folder of the job itself, which would then resume from the drill's."""
    return None if spec.checkpoint is None else replace(spec.checkpoint, dir=None)
