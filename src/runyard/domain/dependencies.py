"""What a job that depends on others may do: start, wait, or give up."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping

from runyard.domain import errors, reasons
from runyard.domain.job import Dependency
from runyard.domain.reasons import Reason
from runyard.domain.states import ENDED, JobStatus

# In a batch, depends_on may name another job of the same batch: "@" and its name.
BATCH_MARK = "@"


def readiness(dependencies: Iterable[tuple[Dependency, str, JobStatus]]) -> Reason | None:
    """None when all are met; else a reason: `dependency` to wait, or `dependency_failed` when one
    can never be met any more. Each comes with the public id and status of the job depended on."""
    unmet = []
    for dependency, ref, status in dependencies:
        if is_broken(dependency, status):
            params = {"job": ref, "status": status.value}
            return Reason(reasons.DEPENDENCY_FAILED, params)
        if not is_met(dependency, status):
            unmet.append({"job": ref, "on": dependency.on, "status": status.value})
    return Reason(reasons.DEPENDENCY, {"jobs": unmet}) if unmet else None


def is_met(dependency: Dependency, status: JobStatus) -> bool:
    if dependency.on == "end":
        return status in ENDED
    return status is JobStatus.COMPLETED


def is_broken(dependency: Dependency, status: JobStatus) -> bool:
    return dependency.on == "success" and status in (JobStatus.FAILED, JobStatus.CANCELLED)


def refuse_cycles(depends_on: Mapping[str, Iterable[str]]) -> None:
    """Raise DependencyCycle if jobs submitted together wait for each other; names that are no key
    are jobs that exist already and cannot be part of a cycle."""
    sorter = graphlib.TopologicalSorter(depends_on)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        # graphlib lists each job before the one that waits for it; we say who waits for whom
        jobs = list(reversed(error.args[1]))
        raise errors.DependencyCycle(cycle=" -> ".join(jobs), jobs=jobs) from None
