"""The executor port: how attempts are started on something, and what every executor promises.

Promises
- `start` may be called again for the same attempt: it runs at most once.
- Nothing of the user's runs before the identity of its first process is recorded.
- `stop` may be called again, before the start and after the end; a later call can only shorten the
  grace. It returns at once; the end comes as news.
- Every attempt gets exactly one end record. The exit code in it is true or None.
- An end is told only when the attempt is proven empty; until then `inspect` says it lives.
- News can be lost with the server; `inspect` always tells the truth, also after a restart.
- `stop`, `inspect` and `remove` never touch a process they cannot prove to be the attempt's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything an executor needs to run one attempt."""

    attempt_id: str
    job_ref: str
    tag: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    make_dirs: tuple[str, ...] = ()  # made before the start if missing
    grace_s: float = 40.0
    leftover_grace_s: float = 2.0
    timeout_s: float | None = None
    log_cap_bytes: int = 256 * 1024 * 1024
    gpu_uuids: tuple[str, ...] = ()
    gpu_shared: bool = False
    nice: int = 0
    tty: bool = False
    isolation: str = "none"  # or strict: namespaces of its own
    image: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stop:
    """A request to end an attempt. `seq` grows with every request for the same attempt."""

    seq: int
    cause: str  # user, shutdown, timeout, lease, rule ...
    grace_s: float
    requested_by: str
    requested_at: float


class ExecutorUnavailable(Exception):
    """Nothing can be started right now."""


class NewsKind(StrEnum):
    STARTED = "started"
    ENDED = "ended"
    STUCK = "stuck"  # something of it cannot be killed
    LOST_SIGHT = "lost_sight"  # its supervisor died: inspect


@dataclass(frozen=True, slots=True)
class End:
    """The end record of an attempt."""

    code: int | None
    signal: int | None
    cause: str  # exited, cancelled, timeout, exec_failed, cwd_missing, never_started, ...
    by: str  # supervisor, keeper, reconciler
    ended_at: float
    started_at: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)  # what the cause needs: errno, path
    receipt: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class News:
    attempt_id: str
    kind: NewsKind
    at: float
    end: End | None = None
    stuck: tuple[Mapping[str, Any], ...] = ()


class Sight(StrEnum):
    """What `inspect` saw."""

    ABSENT = "absent"  # nothing was ever handed over
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Sighting:
    sight: Sight
    started_at: float | None = None
    end: End | None = None
    stop_seq: int = 0
    hung_since: float | None = None  # the supervisor is alive but has not beaten
    stuck: tuple[Mapping[str, Any], ...] = ()  # processes that cannot be killed


class Executor(Protocol):
    name: str

    def open(self, hear: Callable[[News], None]) -> None:
        """Begin to work; `hear` is called from a thread of the executor and must be quick."""
        ...

    def close(self, *, keep: bool) -> None:
        """Stop working; with keep=False the helper processes end too once nothing runs."""
        ...

    def available(self) -> tuple[bool, str]:
        """Whether attempts can be started now, and if not why (a stable code)."""
        ...

    def start(self, launch: Launch) -> None:
        """Returns once handed over; ExecutorUnavailable or OSError when that cannot be done."""
        ...

    def refuse(self, attempt_id: str) -> bool:
        """Make sure that an attempt of which nothing was handed over can never start, not even by
        a hand-over that is under way. False if it was handed over after all: inspect."""
        ...

    def stop(self, attempt_id: str, stop: Stop) -> None: ...
    def inspect(self, attempt_ids: Sequence[str]) -> dict[str, Sighting]:
        """May take action to find out: an attempt without a living supervisor is swept and gets
        its end record here. Many at the cost of one."""
        ...

    def log_path(self, attempt_id: str) -> str:
        """The attempt's log as a local file; it may not exist yet."""
        ...

    def remove(self, attempt_id: str) -> None:
        """Delete what an ended attempt left in the executor's keeping (folder, log)."""
        ...

    def touched_at(self, attempt_id: str) -> float:
        """When what it has of an attempt last changed; 0 where it has nothing."""
        ...

    def known(self) -> list[str]:
        """Attempt ids the executor has anything of, for reconciling."""
        ...
