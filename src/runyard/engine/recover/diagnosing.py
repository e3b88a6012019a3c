"""Why an attempt failed: what is known of its end is gathered, bounded, and classified."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from runyard.domain import ending, events, reasons
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.failures.evidence import Evidence, RankLog
from runyard.domain.job import Attempt, Job
from runyard.domain.states import JobStatus
from runyard.engine import server_log
from runyard.engine.drill import drill_faults
from runyard.engine.parts import Parts
from runyard.engine.recover import diverged, host_facts, last_metrics, rank_logs
from runyard.executors.base import End, Executor
from runyard.logs import log_ends
from runyard.logs.log_ends import LogEnds
from runyard.supervisor import journal


class Diagnoser:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def of_ends(
        self, ends: Sequence[tuple[str, End]], wrote_nothing: Collection[str] = ()
    ) -> dict[str, Diagnosis]:
        """Of those that failed, or ended well with a loss that is no number. Never raises: an end
        is recorded whatever becomes of this."""
        failed = [
            (name, end)
            for name, end in ends
            if may_have_failed(end)
            or (name not in wrote_nothing and diverged.may_have(self._parts, name))
        ]
        found: dict[str, Diagnosis] = {}
        for name, end in failed:
            try:
                known = self._of_end(name, end)
            except Exception as error:
                log = server_log.of(name.rpartition(".")[0], name)
                log.opt(exception=error).error("why it failed could not be worked out")
                continue
            if known is not None:
                found[name] = known
        return found

    def again(self, job: Job, attempt: Attempt) -> Diagnosis | None:
        """Of an attempt that has ended, by what is still there of it."""
        end = self._recorded(attempt)
        return rank_logs.classified(self._evidence(job, attempt, end))

    def _of_end(self, name: str, end: End) -> Diagnosis | None:
        with self._parts.store.read() as reader:
            attempt = reader.attempt(name)
            job = None if attempt is None else reader.job(attempt.job_id)
        if attempt is None or job is None or job.status is JobStatus.CANCELLING:
            return None
        return rank_logs.classified(self._evidence(job, attempt, end))

    def _recorded(self, attempt: Attempt) -> End:
        """The end record if it is still here, else what the store kept of it."""
        executor = self._parts.executors.get(attempt.executor)
        if executor is not None and attempt.node_id == self._parts.node_id:
            seen = executor.inspect([attempt.attempt_id]).get(attempt.attempt_id)
            if seen is not None and seen.end is not None:
                return seen.end
        return End(
            attempt.exit_code,
            attempt.signal,
            attempt.cause or "unknown",
            "server",
            attempt.ended_at or attempt.created_at,
            attempt.started_at,
            _detail(attempt),
        )

    def _evidence(self, job: Job, attempt: Attempt, end: End) -> Evidence:
        ends, shape = LogEnds(), job.spec.distributed
        logs: tuple[RankLog, ...] = ()
        executor = self._parts.executors.get(attempt.executor)
        if executor is not None and attempt.node_id == self._parts.node_id:
            path = partial(executor.log_path, attempt.attempt_id, "")
            ends = log_ends.read(path(0))
            logs = () if shape is None else rank_logs.of_end(path, shape, end)
        pids = self._pids(executor, attempt)
        stopping = job.reason if job.reason and job.reason.code == reasons.STOPPING else None
        return Evidence(
            exit_code=end.code,
            signal=end.signal,
            cause=end.cause,
            detail=end.detail,
            stop_cause=(end.receipt.get("stop") or {}).get("cause"),
            rule=None if stopping is None else stopping.params.get("rule"),
            oom_kills=int(end.detail.get("oom_kills") or 0),
            logs=logs or (rank_logs.of_rank(0, ends, end.ended_at),),
            world_size=1 if shape is None else shape.world_size,
            metrics=last_metrics.of_attempt(self._parts, job, attempt, ends),
            host=host_facts.of_end(self._parts, job, attempt, end, pids),
            own_pids=pids,
            files_limited=self._is_drilled(job, attempt, "disk"),
        )

    def _is_drilled(self, job: Job, attempt: Attempt, fault: str) -> bool:
        """Whether that was done to this very attempt; a clone that goes on is not limited."""
        if job.spec.labels.get(drill_faults.LABEL) != fault:
            return False
        with self._parts.store.read() as reader:
            return any(
                one.event.code == events.DRILL_FAULT and one.event.attempt_id == attempt.attempt_id
                for one in reader.events(job.id)
            )

    def _pids(self, executor: Executor | None, attempt: Attempt) -> frozenset[int]:
        """Those that were seen while it ran, by whoever looked."""
        seen = self._parts.board.pids(attempt.job_id, attempt.number)
        if executor is None or attempt.node_id != self._parts.node_id:
            return seen
        ranks = (one.get("pid") for one in executor.ranks(attempt.attempt_id))
        run_dir = self._parts.settings.data_dir / "attempts" / attempt.attempt_id
        return seen | {pid for pid in (*ranks, _main_pid(str(run_dir))) if pid}


def may_have_failed(end: End) -> bool:
    """Neither a success nor an end that somebody asked for."""
    if end.cause in ending.CANCELLED:
        stop = (end.receipt.get("stop") or {}).get("cause")
        return stop is not None and stop not in ending.ASKED_FOR
    return end.code != 0 or end.cause != "exited"


def summary(diagnosis: Diagnosis) -> dict[str, Any]:
    """What a reason says of it."""
    told: dict[str, Any] = {
        "failure_type": diagnosis.failure_type.value,
        "category": diagnosis.category.value,
    }
    if diagnosis.root is not None:
        told["line"] = diagnosis.root.text
    return told


def _main_pid(run_dir: str) -> int | None:
    try:
        job = journal.read(run_dir).job
    except OSError:
        return None
    return None if job is None else job["pid"]


def _detail(attempt: Attempt) -> dict[str, Any]:
    """Of an end whose record is gone: what its receipt kept of it."""
    kept = attempt.receipt or {}
    ranks = {name: kept[name] for name in ("rank", "ranks") if kept.get(name) is not None}
    return {**(kept.get("service_failure") or {}), **ranks}
