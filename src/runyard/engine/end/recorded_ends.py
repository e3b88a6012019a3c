"""What ends led to: counted, and told in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import Attempt, Job
from runyard.domain.recovery.plan import Plan
from runyard.domain.states import AttemptEnd, JobStatus
from runyard.engine import server_log
from runyard.engine.recover import recovering
from runyard.engine.schedule import readiness
from runyard.engine.tallies import Tallies
from runyard.executors.base import End

_WORDS = {
    JobStatus.COMPLETED: "job completed",
    JobStatus.FAILED: "job failed",
    JobStatus.CANCELLED: "job cancelled",
    JobStatus.RETRYING: "job failed and will be retried",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one end led to."""

    job: Job
    attempt: Attempt
    to: JobStatus
    end: End
    cancelled: Sequence[Job]  # what depended on it and can no longer run
    verdict: AttemptEnd
    diagnosis: Diagnosis | None = None
    plan: Plan | None = None  # of a failure
    wrote: bool = True  # False when it surely left nothing to read or to look for


def count(tallies: Tallies, done: Recorded) -> None:
    tallies.ends.add(done.verdict.value)
    if done.to is JobStatus.RETRYING:
        tallies.retries.add()
    asked = (done.end.receipt.get("stop") or {}).get("requested_at")
    if done.to is JobStatus.CANCELLED and asked:
        tallies.cancel_s.add(max(0.0, done.end.ended_at - asked))


def tell(done: Recorded) -> None:
    """Write it into the log; after the next job was started, which matters more."""
    log = server_log.of(done.job.ref, done.attempt.attempt_id)
    end, receipt = done.end, done.end.receipt
    before = end.started_at is None and done.to is JobStatus.CANCELLED
    log.info(
        "{}{}: exit code {}, signal {}, cause {} (by {})",
        _WORDS[done.to],
        " before starting" if before else "",
        end.code,
        end.signal,
        end.cause,
        end.by,
    )
    # Where nobody knows why, and the same is tried again, the line above says it all.
    if done.plan is not None and recovering.is_worth_telling(done.diagnosis, done.plan):
        log.info("why: {}; then: {}", *recovering.in_words(done.diagnosis, done.plan))
    # The ordinary end of a lone process leaves nothing that is worth a line.
    if receipt.get("processes_ended", 0) > 1 or receipt.get("shm_bytes") or receipt.get("signals"):
        log.info(
            "cleaning up: {} processes ended, proof {}, {} bytes of shared memory removed",
            receipt.get("processes_ended", 0),
            receipt.get("proof"),
            receipt.get("shm_bytes", 0),
        )
    if done.attempt.ports:
        log.info("ports returned: {}", list(done.attempt.ports))
    readiness.tell_cancelled(done.cancelled, done.job.ref)
