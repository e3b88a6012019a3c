"""Where the log of an attempt is: which file, and on which server."""

from __future__ import annotations

from runyard.domain import distributed, errors, preparation, states
from runyard.domain.job import Job
from runyard.domain.states import AttemptStatus
from runyard.engine.commands import find
from runyard.engine.parts import Parts
from runyard.engine.units import unit_of


class LogPlaces:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def path(self, ref: str, attempt: int | None, rank: int, service: str) -> tuple[str, bool]:
        """The log file of an attempt (the newest by default) or of a service of it, and whether it
        can still grow."""
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            number = job.attempt_number if attempt is None else attempt
            found = reader.attempt(job.attempt_id(number))
        if service and all(service != one.name for one in job.spec.services):
            raise errors.NotFound(f"Job {job.ref} has no service {service}.", service=service)
        if found is None:
            if attempt is None:
                return self._before_attempts(job), job.status in states.ENDED
            raise errors.NotFound(f"Job {job.ref} has no attempt {attempt}.", attempt=attempt)
        ranks = 1 if job.spec.distributed is None else job.spec.distributed.world_size
        if rank >= ranks:
            raise errors.NotFound(f"Attempt {found.attempt_id} has no rank {rank}.", rank=rank)
        executor = self._parts.executors[found.executor]
        path = executor.log_path(
            found.attempt_id, service, distributed.log_rank(job.spec.distributed, rank)
        )
        return path, found.status is AttemptStatus.ENDED

    def _before_attempts(self, job: Job) -> str:
        """Of a job that ended without an attempt: what its preparation said."""
        if job.status not in states.ENDED or not preparation.needed(job.spec):
            return ""
        with self._parts.store.read() as reader:
            units = [unit_of(one) for one in reader.preparations(job.id)]
        return self._parts.executors[units[-1].executor].log_path(units[-1].name) if units else ""

    def url(self, ref: str, attempt: int | None) -> str | None:
        """The URL of the server that owns the attempt; None when it is this one."""
        if not self._parts.store.shared:
            return None
        with self._parts.store.read() as reader:
            job = find(reader, ref)
            number = job.attempt_number if attempt is None else attempt
            found = reader.attempt(job.attempt_id(number))
            if found is None or found.node_id == self._parts.node_id:
                return None
            return next(
                (n.url for n in reader.nodes() if n.node_id == found.node_id and n.url), None
            )
