"""Reads what one attempt writes: its metrics file, its log and its event files, by offset."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runyard.domain.monitoring.attempt_account import AttemptAccount
from runyard.domain.monitoring.series import Sample
from runyard.domain.progress import hints, reported
from runyard.domain.progress.point import Checkpoint, Point, Stale
from runyard.domain.progress.reading import Reader
from runyard.domain.recovery import batch_scale_mark
from runyard.engine.watch.board import Progress
from runyard.logs.log_tail import LogTail, Tail, lines_between
from runyard.probes.base import EventFiles

_PART = 256 * 1024  # bytes of one file read at a time
_FAR_BEHIND = 64 * 2**20  # a log further behind than this is not caught up with line by line
_HEAD = 64 * 1024  # read again after a restart: totals are told at the beginning
_BEFORE = 256 * 1024  # and what came last
_FIND_EVERY_S = 15.0
_FORECAST_EVERY_S = 5.0
_MARK_EVERY = 256 * 1024  # bytes without a metric in them after which it is noted how far


@dataclass(frozen=True, slots=True)
class Files:
    log: str
    metrics: str
    output_dir: str
    rank_metrics: Mapping[int, str] = field(default_factory=dict)  # of the other ranks
    token: str | None = None  # of a distributed attempt


@dataclass(slots=True)
class Taken:
    samples: list[Sample] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    more: bool = False  # there is more to read now


class AttemptReading:
    """`mark` is what `mark()` gave when the attempt was last read by another server process."""

    def __init__(
        self,
        files: Files,
        command: str | tuple[str, ...],
        started_at: float,
        event_files: EventFiles | None,
        mark: str | None,
    ) -> None:
        self._files = files
        self._event_files = event_files
        self._since = started_at
        told = hints.from_command(command)
        self._reader = Reader(told)
        self.account = AttemptAccount(told)
        self.malformed = 0
        self.stale = 0  # lines of ranks that should be gone
        self.skipped_bytes = 0
        kept = _kept(mark)
        self._log = LogTail(files.log, _number(kept.get("log")))
        self._metrics = LogTail(files.metrics, _number(kept.get("metrics")))
        offsets = {str(rank): _number(offset) for rank, offset in _entries(kept.get("ranks"))}
        self._ranks = {
            rank: LogTail(path, offsets.get(str(rank), 0))
            for rank, path in files.rank_metrics.items()
        }
        self._events = {
            str(path): _number(offset) for path, offset in _entries(kept.get("events"))
        }
        self._log_at = max(started_at, float(_number(kept.get("at"))))
        self._find_at = float("-inf")
        self._bar = ""
        self._told_bar = ""
        self._told: tuple[object, ...] = ()
        self._told_at = float("-inf")
        self._progress: Progress | None = None
        self._marked = self._place()
        if kept:
            self._remember()

    def read(self, now: float, *, final: bool = False) -> Taken:
        """A bounded part of what is new. With `final`, a last line needs no end."""
        taken = Taken()
        self._read_metrics(now, taken)
        self._read_log(now, taken)
        self._read_events(now, taken, look=final)
        if final and not taken.more:
            self._take_rests(now, taken)
        return taken

    def mark(self, *, force: bool = False) -> str | None:
        """How far it was read, if that is worth keeping since it was last asked for."""
        place = self._place()
        far = sum(place) - sum(self._marked)
        if not (force and far) and far < _MARK_EVERY:
            return None
        self._marked = place
        kept: dict[str, Any] = {
            "at": self._log_at,
            "log": self._log.offset,
            "metrics": self._metrics.offset,
            "events": self._events,
        }
        if self._ranks:
            kept["ranks"] = {rank: tail.offset for rank, tail in self._ranks.items()}
        return json.dumps(kept)

    def progress(self, now: float) -> Progress | None:
        """Worked out anew when something was told, and sometimes while nothing is."""
        it = self.account
        told = (it.at, it.step, it.fraction, it.phase)
        if told != self._told or not 0 <= now - self._told_at < _FORECAST_EVERY_S:
            self._told, self._told_at = told, now
            self._progress = self._work_out(now)
        return self._progress

    def _work_out(self, now: float) -> Progress | None:
        it = self.account
        if not it.source:
            return None
        return Progress(
            fraction=it.fraction,
            step=it.step,
            total_steps=it.total_steps,
            epoch=it.epoch,
            total_epochs=it.total_epochs,
            eta=it.eta(now),
            source=it.source,
            phase=it.phase,
            step_at=it.step_at,
            at=it.at,
        )

    @property
    def too_long(self) -> int:
        ranks = sum(tail.too_long for tail in self._ranks.values())
        return self._log.too_long + self._metrics.too_long + ranks

    def _place(self) -> tuple[int, ...]:
        ranks = (tail.offset for tail in self._ranks.values())
        return (self._log.offset, self._metrics.offset, *ranks, *self._events.values())

    # the metrics file

    def _read_metrics(self, now: float, taken: Taken) -> None:
        for rank, file in ((0, self._metrics), *self._ranks.items()):
            tail = file.read(_PART)
            taken.more = taken.more or tail.more
            for line in tail.lines:
                self._take_reported(line.text, now, taken, rank)

    def _take_reported(self, text: str, now: float, taken: Taken, rank: int = 0) -> None:
        """`rank` is whose file it is: a program in another language may not say."""
        found = reported.parse_line(text, now, self._files.token)
        if isinstance(found, Checkpoint):
            taken.checkpoints.append(found)
        elif isinstance(found, Stale):
            self.stale += 1
        elif isinstance(found, Point):
            found = replace(found, rank=rank) if rank and not found.rank else found
            if not found.rank:
                self._reader.note_reported(found)
            taken.samples += self.account.take_report(found)
        elif text.strip() and not batch_scale_mark.is_mark(text):
            self.malformed += 1

    # the log

    def _read_log(self, now: float, taken: Taken) -> None:
        tail = self._log.read(_PART)
        if tail.size - self._log.offset > _FAR_BEHIND:
            behind = tail.size - _PART - self._log.offset
            self.skipped_bytes += behind
            self._log.skip_to(self._log.offset + behind)
        taken.more = taken.more or tail.more
        times = self._times(tail, now)
        for line in tail.lines:
            if line.text != self._told_bar:
                taken.samples += self._take_line(line.text, times(line.end))
            self._told_bar = ""
        if not tail.more:
            self._look_at_bar(taken)

    def _take_line(self, text: str, at: float) -> list[Sample]:
        points = self._reader.feed(text, at)
        return self.account.take_log(points, self._reader.phase)

    def _times(self, tail: Tail, now: float) -> Any:
        """Log lines have no time of their own: they are spread over the time they came in."""
        first = self._log_at
        last = min(now, tail.changed_at) if tail.changed_at else now
        if last < first:  # a clock was set back
            first = last = now
        self._log_at = last if not tail.more else first
        start, whole = tail.start, max(1, tail.size - tail.start)
        if tail.more and tail.lines:
            self._log_at = first + (last - first) * (tail.lines[-1].end - start) / whole
        return lambda place: first + (last - first) * (place - start) / whole

    def _look_at_bar(self, taken: Taken) -> None:
        """A bar that is drawn once a minute has no end until it is drawn again."""
        bar = self._log.bar()
        if bar and bar == self._bar and bar != self._told_bar:
            taken.samples += self._take_line(bar, self._log_at)
            self._told_bar = bar
        self._bar = bar

    # event files

    def _read_events(self, now: float, taken: Taken, *, look: bool) -> None:
        source = self._event_files
        if source is None:
            return
        if look or not 0 <= now - self._find_at < _FIND_EVERY_S:
            self._find_at = now
            for path in source.find(self._files.output_dir, self._since):
                self._events.setdefault(path, 0)
        for path, offset in self._events.items():
            found = source.read(path, offset, self._since, _PART)
            self._events[path] = found.offset
            taken.more = taken.more or found.more
            run = os.path.dirname(path)
            taken.samples += self.account.take_events(found.samples, run)

    # beginning and end

    def _take_rests(self, now: float, taken: Taken) -> None:
        for rank, file in ((0, self._metrics), *self._ranks.items()):
            text = file.take_rest()
            if text.strip():
                self._take_reported(text, now, taken, rank)
        text = self._log.take_rest()
        if text and text != self._told_bar:
            taken.samples += self._take_line(text, self._log_at)
        taken.samples += self.account.take_log(self._reader.finish())

    def _remember(self) -> None:
        """After a restart: what was read before is read again, but not told again."""
        end = self._metrics.offset
        forgotten = Taken()
        for text in lines_between(self._files.metrics, max(0, end - _BEFORE), end):
            self._take_reported(text, self._log_at, forgotten)
        end = self._log.offset
        parts = [(max(0, end - _BEFORE), end)]
        if parts[0][0] > 0:
            parts.insert(0, (0, min(_HEAD, parts[0][0])))
        for start, stop in parts:
            for text, at in _spread(lines_between(self._files.log, start, stop), self, start):
                self._take_line(text, at)
        self.malformed = 0

    def time_at(self, place: float) -> float:
        """About when a byte of the log that was read before was written."""
        whole = max(1, self._log.offset)
        return self._since + (self._log_at - self._since) * min(1.0, place / whole)


def _spread(lines: list[str], reading: AttemptReading, start: int) -> list[tuple[str, float]]:
    spread, place = [], start
    for text in lines:
        place += len(text) + 1
        spread.append((text, reading.time_at(place)))
    return spread


def _kept(mark: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(mark or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _entries(found: object) -> list[tuple[Any, Any]]:
    return list(found.items()) if isinstance(found, dict) else []


def _number(found: object) -> int:
    return int(found) if isinstance(found, int | float) and found > 0 else 0
