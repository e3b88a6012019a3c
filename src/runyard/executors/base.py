"""The executor port: how attempts are started on something, and what every executor promises.

Promises
- `start` may be called again for the same attempt: it runs at most once.
- Nothing of the user's runs before the identity of its first process is recorded.
- `stop` may be called again, before the start and after the end; a later call can only shorten the
  grace. It returns at once; the end comes as news.
- Every attempt gets exactly one end record. The exit code in it is true or None.
- Of a launch with slices all ranks are started or none. The first rank that fails ends the others
  after `gang_grace_s`; the code and signal of the end are that rank's, `detail` names it
  (`rank`) and lists them all (`ranks`: rank, code, signal, ended_at).
- An end is told only when the attempt is proven empty; until then `inspect` says it lives.
- An executor with nodes of its own tells an end only when the memory of the attempt is back on
  their GPUs, as far as they can be read; `gpus` of the receipt has what was read.
- News can be lost with the server; `inspect` always tells the truth, also after a restart.
- `stop`, `inspect` and `remove` never touch a process they cannot prove to be the attempt's.
- Where several servers reach one cluster, each may do all of this with every attempt there, also
  one that another server started: what one refuses none can start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from runyard.supervisor.stack_dump import Dump


@dataclass(frozen=True, slots=True)
class ServiceLaunch:
    """A helper to start before the attempt's main process; `env` comes on top of the attempt's."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    port: int
    health: str = "tcp"
    ready_timeout_s: float = 60.0
    restart: str = "never"


@dataclass(frozen=True, slots=True)
class RankLaunch:
    """One rank of a slice; `env` comes on top of the slice's."""

    rank: int
    local_rank: int
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SliceLaunch:
    """The part of an attempt that runs on one node."""

    index: int
    node: str  # the executor's name of that node; "" = this machine
    argv: tuple[str, ...]  # torchrun differs by slice
    env: Mapping[str, str]  # on top of the attempt's
    ranks: tuple[RankLaunch, ...]  # () = one main process
    gpu_ids: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()  # granted there, that where all ranks meet among them
    log_rank: int = 0  # whose log that of its main process is, where a launcher starts the ranks


@dataclass(frozen=True, slots=True)
class ContainerLaunch:
    """The container an attempt with an image runs in. Folders are at the same path inside as
    outside, so that every path that a job or we write down means the same to both."""

    image: str
    cpu_milli: int = 0  # 0: as much as there is
    memory_mb: int | None = None  # the kernel ends it above this
    workspace: str = ""  # the folder that is /workspace inside
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()  # reachable from this machine


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
    kill_timeout_s: float = 60.0  # what lives so long after a kill is told as stuck
    timeout_s: float | None = None
    log_cap_bytes: int = 256 * 1024 * 1024
    gpu_uuids: tuple[str, ...] = ()
    gpu_shared: bool = False
    nice: int = 0
    cpus: tuple[int, ...] | None = None  # those it may run on; None: all
    memory_limit_mb: int | None = None  # enforced by the kernel where it has a group of its own
    memory_soft: bool = False  # without such a group: watched, and ended above its limit
    pids_limit: int | None = None  # processes and threads; only with a group
    own_group: bool = False  # a control group of its own, where there can be one
    tty: bool = False
    isolation: str = "none"  # or strict: namespaces of its own
    services: tuple[ServiceLaunch, ...] = ()
    cpu_milli: int = 0  # of each slice, for an executor that reserves it where it runs
    gpu_milli: int = 0
    ports: tuple[int, ...] = ()  # granted on this machine: none may be in use at the start
    slices: tuple[SliceLaunch, ...] = ()  # () = one process on one node
    gang_grace_s: float = 10.0  # for the other ranks, once one failed
    finish_skew_s: float = 600.0  # for the other ranks, once one ended well
    image: str | None = None
    container: ContainerLaunch | None = None  # of an attempt with an image
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
    FINISHING = "finishing"  # its main process ended, what that left is being ended
    STOPPING = "stopping"  # its supervisor decided to end it: a time limit, a failed service ...
    SERVICE = "service"  # a service of it got ready, ended, is unhealthy or healthy again
    STUCK = "stuck"  # something of it cannot be killed
    GPUS_HELD = "gpus_held"  # it is gone from its nodes, its memory there is not back
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
    service: Mapping[str, Any] = field(default_factory=dict)  # kind, name, and what it needs
    cause: str = ""  # of STOPPING
    grace_s: float = 0.0  # of STOPPING
    gpus: tuple[Mapping[str, Any], ...] = ()  # of GPUS_HELD: {index, uuid, used_mb, node}
    waited_s: float = 0.0  # of GPUS_HELD: since its end


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
    pid: int | None = None  # of its main process, where that is one of this machine


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep of one attempt did, and which processes of it live on."""

    killed: int = 0
    living: tuple[Mapping[str, Any], ...] = ()  # {pid, name, state, where, user}


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of one attempt use. The counters (`cpu_s`, `read_bytes`, `write_bytes`)
    grow, also over the end of single processes; only their differences mean anything."""

    at: float  # when, by a clock that never jumps
    cpu_s: float
    rss_mb: float  # pages that processes share are counted for each
    pids: tuple[int, ...]
    pss_mb: float | None = None  # shared pages counted in parts; told now and then only
    read_bytes: int | None = None  # from and to storage
    write_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NodeGpu:
    """One GPU of a node an executor offers."""

    index: int
    uuid: str
    name: str = ""
    memory_mb: int = 0


@dataclass(frozen=True, slots=True)
class ExecutorNode:
    """A machine that an executor can start attempts on, other than the server's own."""

    name: str  # the executor's own name of it, the same over restarts
    address: str  # where its ranks can be reached by those of other nodes
    cpu_cores: float
    memory_mb: int
    gpus: tuple[NodeGpu, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    alive: bool = True
    # What it belongs to: servers whose executors tell the same cluster reach the same attempts,
    # and take them over from each other. "": nobody else reaches it.
    cluster: str = ""


class Images(Protocol):
    """Of an executor that runs images: brings them here before a job is given anything."""

    def is_here(self, image: str) -> bool:
        """Whether a start would have nothing to pull. ExecutorUnavailable when nobody knows."""
        ...

    def pull(self, image: str, progress_file: str) -> tuple[str, ...]:
        """The program that brings it, which ends with 0 once it is here. How far it is goes into
        the file as JSON: bytes_done, bytes_total, layers_done, layers_total; at a bad end also
        `error` (the registry's words) and `code`. ExecutorUnavailable."""
        ...


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

    def nodes(self) -> Sequence[ExecutorNode] | None:
        """The machines it starts attempts on; None: the one this server runs on."""
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

    def sweep(self, attempt_ids: Sequence[str]) -> dict[str, Swept]:
        """Of attempts whose end was asked for long ago: find their processes by every proof there
        is, also under a living supervisor, and kill them. Those nobody asked to end are left."""
        ...

    def sweep_traceless(self, attempts: Mapping[str, tuple[int, float]]) -> dict[str, Swept]:
        """The last resort, for attempts of which the executor has nothing any more: with nothing
        but id -> (tag, when it was made), find what lives of them and end it."""
        ...

    def usage(self, attempt_ids: Sequence[str]) -> dict[str, Usage]:
        """What those that live use now. Many at the cost of one; never called by two threads at
        once. Attempts of which nothing can be told are left out."""
        ...

    def log_path(self, attempt_id: str, service: str = "", rank: int = 0) -> str:
        """The attempt's log, that of another rank than the first or of a service, as a local file;
        it may not exist yet."""
        ...

    def services(self, attempt_id: str) -> list[dict[str, Any]]:
        """What became of its services so far: name, state (starting, ready, restarting, ended),
        healthy, pid, port, restarts, exit_code, signal."""
        ...

    def ranks(self, attempt_id: str) -> list[dict[str, Any]]:
        """What became of its ranks so far: rank, state (starting, running, ended), pid, exit_code,
        signal, ended_at. None of an attempt of one process on each node."""
        ...

    def stacks(self, attempt_id: str, seconds: float) -> list[Dump]:
        """Where each process that is proven the attempt's is now, ranks first, looked at on the
        machine it runs on for about `seconds` at most. Those that cannot be asked are left out."""
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
