"""The loop that reads what attempts of this node write, and tells the board and the history."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from runyard.domain import distributed, job_environment
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.attempt_account import MOST_RANKS
from runyard.domain.progress.point import Checkpoint
from runyard.domain.states import AttemptStatus, JobStatus
from runyard.engine import job_dirs, server_log
from runyard.engine.history import read_marks
from runyard.engine.history.attempt_reading import AttemptReading, Files
from runyard.engine.history.metric_history import MetricHistory
from runyard.engine.loop import Loop
from runyard.engine.parts import Parts
from runyard.stores.base import Transaction

WATCHED_S = 1.0
UNWATCHED_S = 3.0
_SOONEST_S = 0.1  # ends may come by the thousand
_TELL_EVERY_S = 1.0
_LEAST_CHANGE = 0.1  # percent
_ALMOST = 99.9  # 100 is told by the end

HearCheckpoint = Callable[[int, int, Checkpoint], None]


def output_dir_of(job: Job, data_dir: str) -> str:
    return job_dirs.output_dir(job, data_dir)


@dataclass(slots=True)
class _Open:
    """An attempt that is being read."""

    job_id: int
    job_ref: str
    attempt: Attempt
    reading: AttemptReading
    told: float | None = None  # percent
    told_at: float = field(default=float("-inf"))


class LogReading:
    def __init__(self, parts: Parts, history: MetricHistory) -> None:
        self._parts = parts
        self._history = history
        self._open: dict[str, _Open] = {}
        self._done: set[str] = set()  # read whole; the store is being told
        self._hear_checkpoint: list[HearCheckpoint] = []
        self._ticked = 0.0
        self._looked = float("-inf")  # at what runs
        self._loop = Loop("log reading", self._tick, UNWATCHED_S)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def on_checkpoint(self, hear: HearCheckpoint) -> None:
        """`hear(job_id, attempt, checkpoint)` for each that a training reports."""
        self._hear_checkpoint.append(hear)

    def ended(self, attempt_id: str, *, wrote: bool) -> None:
        """Its last lines are read soon; there are none if it wrote nothing."""
        if wrote or attempt_id in self._open:
            self._loop.wake()

    def _tick(self) -> float | None:
        sleep(max(0.0, min(_SOONEST_S, self._ticked + _SOONEST_S - monotonic())))
        begun = self._ticked = monotonic()
        every = WATCHED_S if self._parts.board.watchers.anybody() else UNWATCHED_S
        regular = begun >= self._looked + every
        if regular:
            self._looked = begun
        ended = self._look(opening=regular)
        more = False
        for attempt_id, one in list(self._open.items()):
            if not self._history.has_room():
                more = False  # what is in the files can wait
                break
            try:
                more = self._read(one, final=attempt_id in ended) or more
            except Exception as error:
                log = server_log.of(one.job_ref, attempt_id)
                log.opt(exception=error).error("its metrics could not be read")
                if attempt_id in ended:
                    self._close(one)
        self._tell_progress()
        if more:  # half of the time at most
            return max(_SOONEST_S, monotonic() - begun)
        return max(0.0, self._looked + every - monotonic())

    def _look(self, *, opening: bool) -> set[str]:
        """Open what ended unread and, if `opening`, what runs: ends of others are no reason to
        look at a command that may be over in a moment. Returns those that ended."""
        with self._parts.store.read() as reader:
            live = {one.attempt_id: one for one in reader.live_attempts(self._parts.node_id)}
            marks = read_marks.all_of(reader)
            self._done &= marks.keys()
            marks = {name: mark for name, mark in marks.items() if name not in self._done}
            unread = [name for name in (*marks, *self._open) if name not in live]
            known = {**reader.attempts_by_id(unread), **live}
            wanted = {*live, *marks} if opening else marks.keys()
            new = [name for name in wanted if name not in self._open and name in known]
            ids = [known[name].job_id for name in new]
            jobs = {job.id: job for job in reader.jobs_by_id(ids)}
        for attempt_id in marks.keys() - known.keys():
            self._history.mark(attempt_id, None)
        gone = self._open.keys() - known.keys()  # its job was deleted
        gone |= {one for one in self._open if one in known and self._is_anothers(known[one])}
        for attempt_id in gone:
            self._forget(self._open.pop(attempt_id))
        for attempt_id in new:
            attempt = known[attempt_id]
            job = jobs.get(attempt.job_id)
            if job is not None and attempt.node_id == self._parts.node_id:
                self._begin(job, attempt, marks.get(attempt_id))
        return {name for name in self._open if name not in live}

    def _is_anothers(self, attempt: Attempt) -> bool:
        """Whether another server has taken it over and reads it."""
        shared = self._parts.store.shared
        return shared and attempt.node_id != self._parts.node_id

    def _begin(self, job: Job, attempt: Attempt, mark: str | None) -> None:
        executor = self._parts.executors.get(attempt.executor)
        if executor is None:
            return
        data_dir = str(self._parts.settings.data_dir)
        run_dir = os.path.join(data_dir, "attempts", attempt.attempt_id)
        files = Files(
            log=executor.log_path(attempt.attempt_id),
            metrics=os.path.join(run_dir, job_environment.METRICS_FILE),
            output_dir=output_dir_of(job, data_dir),
            **_of_ranks(job, attempt, run_dir),
        )
        reading = AttemptReading(
            files,
            job.spec.command,
            attempt.started_at or attempt.created_at,
            self._parts.event_files,
            mark,
        )
        opened = _Open(job.id, job.ref, attempt, reading)
        if mark and job.attempt_number == attempt.number:
            opened.told = job.progress
        self._open[attempt.attempt_id] = opened
        if attempt.status is not AttemptStatus.ENDED:
            board = self._parts.board
            board.begin(job.id, attempt.number)
            if mark:
                size = self._parts.settings.history_size
                for samples in self._history.tails(job.id, attempt.number, None, size).values():
                    board.restore(job.id, attempt.number, samples)

    def _read(self, one: _Open, *, final: bool) -> bool:
        """One part; whether there is more."""
        now = self._parts.clock()
        reading, number = one.reading, one.attempt.number
        taken = reading.read(now, final=final)
        done = final and not taken.more
        with self._history.together():
            self._parts.board.record(one.job_id, number, taken.samples)
            mark = reading.mark(force=bool(taken.samples or taken.checkpoints))
            if done:
                self._history.mark(one.attempt.attempt_id, None)
            elif mark is not None:
                self._history.mark(one.attempt.attempt_id, mark)
        for checkpoint in taken.checkpoints:
            for hear in self._hear_checkpoint:
                hear(one.job_id, number, checkpoint)
        progress = reading.progress(now)
        if progress is not None and not final:
            self._parts.board.set_progress(one.job_id, progress)
        if done:
            self._tell_progress(one)
            self._close(one)
        return taken.more

    def _close(self, one: _Open) -> None:
        self._open.pop(one.attempt.attempt_id, None)
        self._done.add(one.attempt.attempt_id)
        self._forget(one)
        reading = one.reading
        if reading.stale:
            log = server_log.of(one.job_ref, one.attempt.attempt_id)
            log.warning("metrics: {} lines of ranks of another attempt refused", reading.stale)
        lost = reading.malformed + reading.too_long + reading.account.refused
        if lost or reading.skipped_bytes:
            server_log.of(one.job_ref, one.attempt.attempt_id).info(
                "metrics: {} lines not understood, {} lines too long, {} values refused, {} bytes "
                "of log skipped",
                reading.malformed,
                reading.too_long,
                reading.account.refused,
                reading.skipped_bytes,
            )

    def _forget(self, one: _Open) -> None:
        self._parts.board.forget(one.job_id, one.attempt.number)

    def _tell_progress(self, ended: _Open | None = None) -> None:
        """Percentages that changed, into the jobs' rows; at an end without waiting its turn."""
        now = monotonic()
        changed: dict[int, tuple[int, float]] = {}
        for one in [ended] if ended else list(self._open.values()):
            account = one.reading.account
            percent = min(round(100 * account.furthest, 1), _ALMOST)
            grown = one.told is None or percent >= one.told + _LEAST_CHANGE
            if account.fraction is None or not grown:
                continue
            if ended or now - one.told_at >= _TELL_EVERY_S:
                one.told, one.told_at = percent, now
                changed[one.job_id] = one.attempt.number, percent
        if changed:
            work = _progress_writer(changed)
            self._parts.store.write_soon(work, durable=False)


def _of_ranks(job: Job, attempt: Attempt, run_dir: str) -> dict[str, Any]:
    """What a distributed attempt has besides: a metrics file of each rank, and its token."""
    shape = job.spec.distributed
    if shape is None:
        return {}
    first = os.path.join(run_dir, job_environment.METRICS_FILE)
    ranks = range(1, min(shape.world_size, MOST_RANKS))
    return {
        "rank_metrics": {rank: distributed.metrics_file(first, rank) for rank in ranks},
        "token": distributed.token(attempt.attempt_id, attempt.tag),
    }


def _progress_writer(changed: Mapping[int, tuple[int, float]]) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        for job_id, (attempt, percent) in changed.items():
            job = tx.job(job_id)
            if (
                job is not None
                and job.status is not JobStatus.COMPLETED
                and job.attempt_number == attempt
            ):
                tx.update_job(job_id, frozenset({job.status}), progress=percent)

    return work
