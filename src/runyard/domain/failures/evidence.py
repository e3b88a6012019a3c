"""What is known of an attempt that ended: the facts a diagnosis is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LogLine:
    number: int  # counted from 1
    text: str
    at: float | None = None  # when it was written, where that is known


@dataclass(frozen=True, slots=True)
class RankLog:
    """The log of one rank: its first error lines and its tail; both may overlap. A launcher that
    writes all ranks into one log gives one of these, with the ranks as prefixes of lines."""

    rank: int = 0
    first_errors: Sequence[LogLine] = ()
    tail: Sequence[LogLine] = ()
    ended_at: float | None = None  # of its process


@dataclass(frozen=True, slots=True)
class LastMetrics:
    """`first_bad_step` is where the loss first was NaN or infinite and stayed so."""

    step: int | None = None
    first_step: int | None = None  # of this attempt: where it began or resumed
    loss: float | None = None
    loss_finite: bool | None = None
    first_bad_step: int | None = None


@dataclass(frozen=True, slots=True)
class GpuFact:
    """One GPU the attempt had, as seen around its end; `foreign_mb` is held by others."""

    index: int
    uuid: str = ""
    memory_mb: int | None = None
    used_mb: int | None = None
    foreign_mb: int = 0
    xids: tuple[int, ...] = ()  # reported while the attempt ran
    ecc_errors: int = 0  # uncorrected, new


@dataclass(frozen=True, slots=True)
class HostFacts:
    disk_free_bytes: int | None = None
    disk_path: str | None = None
    shm_free_bytes: int | None = None
    memory_limit_mb: int | None = None
    memory_peak_mb: int | None = None
    gpus: tuple[GpuFact, ...] = ()
    kernel_lines: tuple[str, ...] = ()  # of the kernel's log while the attempt ran


@dataclass(frozen=True, slots=True)
class Evidence:
    """`cause` and `detail` are those of the end record (domain/ending.py); `stop_cause` is that of
    the stop under way, if anybody here had asked for one; `rule` the one that fired;
    `files_limited` that a drill let no file of it grow, in place of a full disk."""

    exit_code: int | None = None
    signal: int | None = None
    cause: str = "exited"
    detail: Mapping[str, Any] = field(default_factory=dict)
    stop_cause: str | None = None
    rule: str | None = None
    oom_kills: int = 0
    logs: Sequence[RankLog] = ()
    metrics: LastMetrics = LastMetrics()
    host: HostFacts = HostFacts()
    own_pids: frozenset[int] = frozenset()
    world_size: int = 1
    files_limited: bool = False


def lines_of(text: str, first: int = 1) -> tuple[LogLine, ...]:
    """A piece of log as numbered lines."""
    return tuple(LogLine(number, line) for number, line in enumerate(text.split("\n"), first))
