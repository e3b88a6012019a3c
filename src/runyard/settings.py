"""The one reader of the environment and of runyard.toml; everything else is given a Settings.

Flags override the environment, which overrides the file, which overrides the defaults here.
Standard library only: every client command reads it.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from runyard.domain import errors

DEFAULT_PORT = 8765
CONFIG_NAME = "runyard.toml"
DEFAULT_DATA_DIR = "~/.runyard"


@dataclass(frozen=True, slots=True)
class Settings:
    """One name each, the same in runyard.toml and, with RUNYARD_ before it, in the environment."""

    data_dir: Path = Path(DEFAULT_DATA_DIR)
    database_url: str = ""  # empty: SQLite in the data directory
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    allowed_hosts: tuple[str, ...] = ()  # further names this server may be called by
    root_path: str = ""  # where a reverse proxy shows this server, as /runyard; empty: at the root
    session_days: float = 7.0  # a browser that was not used for so long has to log in again
    login_link: str = "print"  # whether the server says at its start how to log in: print, off
    advertise_url: str = ""  # how other servers of a shared database reach this one
    node_name: str = ""  # empty: the host name
    executors: tuple[str, ...] = ("local",)
    ray_address: str = ""  # auto or HOST:PORT of a cluster; empty: a Ray of our own
    ray_python: str = ""  # the interpreter that has Ray; empty: the server's
    ray_token_path: str = ""  # of the cluster's token; empty: where Ray itself looks for it
    ray_node_dir: str = ""  # where attempts have their folders on nodes; empty: below /tmp
    allow_insecure_ray: bool = False  # join a cluster that lets in people without a token
    docker_host: str = ""  # unix://PATH; empty: DOCKER_HOST or a usual socket; off: none
    docker_network: str = "bridge"  # of containers: bridge, host, none or a network's name
    docker_user: str = ""  # of containers: UID:GID; empty: the server's; image: the image's
    docker_shm_gb: float = 0.0  # shared memory of a container; 0: as much as it has memory
    docker_mounts: tuple[str, ...] = ()  # HOST[:INSIDE][:ro], into every container
    docker_pull: str = "missing"  # images: missing (pulled if they are), always, never
    max_concurrent: int = 2
    gpus: tuple[int, ...] | None = None  # indexes of the pool; None: all there are
    gpu_lock_dir: Path = Path("/tmp/runyard-gpu-locks")
    port_range: tuple[int, int] = (38000, 38199)  # both ends belong to it
    resource_check_interval: float = 30.0
    monitoring_interval: float = 10.0
    history_size: int = 1000
    reconcile_interval: float = 30.0
    gate_cpu: float = 90.0
    gate_memory: float = 85.0
    gate_disk: float = 90.0
    starvation_s: float = 600.0
    server_lease_s: float = 90.0  # a server of a shared database silent so long is taken for dead
    stall_min_s: float = 600.0  # the least time without a new step that is called a stall
    stall_action: str = "alert"  # what a stall leads to: alert, stop (and a new attempt)
    nan_action: str = "alert"  # and a loss that stays NaN: alert, stop (and an older checkpoint)
    detectors_off: tuple[str, ...] = ()  # those that should not look, by the codes of their alerts
    max_retries: int = 3
    retry_delays: tuple[float, ...] = (60.0, 300.0, 900.0)
    grace_s: float = 40.0
    leftover_grace_s: float = 2.0
    gang_grace_s: float = 10.0  # of the other ranks once one failed
    finish_skew_s: float = 600.0  # of the other ranks once one ended well
    kill_timeout_s: float = 60.0  # then what cannot be killed is named
    stale_cancelling_s: float = 300.0  # then people are told, and what is left is swept again
    log_cap_mb: int = 256
    cgroups: str = "auto"  # which attempts get a control group: auto (those with limits), all, off
    enforce_memory: str = "off"  # the memory_gb that a person wrote: off, cgroup, always
    job_pids_limit: int = 0  # processes and threads of one attempt; 0: no limit
    job_nice: int = 0
    max_preparations: int = 4
    preflight: str = "auto"  # checks before a start: auto (jobs with GPUs or downloads), off
    cache_quota_gb: float = 0.0  # 0: no limit
    keep_days: float = 30.0
    metrics_keep_days: float = 30.0  # of single points; what sums them up stays
    prometheus_jobs: int = 0  # running jobs that /metrics names one by one; 0: none
    notify_retry_delays: tuple[float, ...] = (5.0, 30.0, 120.0, 600.0)
    notify_quiet_s: float = 300.0  # the same alert again within this is not told again
    notify_lang: str = "en"  # of messages to people; webhooks get codes
    max_body_mb: float = 8.0
    on_shutdown: str = "stop"
    log_level: str = "INFO"

    @property
    def store_url(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir / 'runyard.db'}"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


_CHOICES = {
    "on_shutdown": ("keep", "stop"),
    "login_link": ("print", "off"),
    "stall_action": ("alert", "stop"),
    "nan_action": ("alert", "stop"),
    "cgroups": ("auto", "all", "off"),
    "enforce_memory": ("off", "cgroup", "always"),
    "docker_pull": ("missing", "always", "never"),
    "notify_lang": ("en", "zh"),
    "preflight": ("auto", "off"),
    "log_level": ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR"),
}
DETECTORS = (
    "disk_full",
    "gpu_trouble",
    "idle_gpu",
    "loss_divergence",
    "loss_plateau",
    "loss_spike",
    "memory_leak",
    "not_finite",
    "slow_down",
    "stalled_training",
)
_PERCENT = ("gate_cpu", "gate_memory", "gate_disk")
_NOT_NEGATIVE = (
    "max_retries",
    "grace_s",
    "leftover_grace_s",
    "gang_grace_s",
    "starvation_s",
    "stall_min_s",
    "history_size",
    "job_pids_limit",
    "prometheus_jobs",
    "cache_quota_gb",
    "docker_shm_gb",
    "notify_quiet_s",
)
_MOUNT = re.compile(r"/[^:,]*(:/[^:,]*)?(:ro)?")
_USER = re.compile(r"(image|[0-9]+:[0-9]+)?")
_ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_POSITIVE = (
    "finish_skew_s",
    "server_lease_s",
    "session_days",
    "max_concurrent",
    "resource_check_interval",
    "monitoring_interval",
    "reconcile_interval",
    "kill_timeout_s",
    "stale_cancelling_s",
    "log_cap_mb",
    "max_preparations",
    "keep_days",
    "metrics_keep_days",
    "max_body_mb",
)


def load(overrides: Mapping[str, object] | None = None) -> Settings:
    """Settings from flags, environment and file; BadSettings names what is wrong and why."""
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    config = given.pop("config", None) or os.environ.get("RUNYARD_CONFIG")
    environment = {
        name: value
        for name in _names()
        if (value := os.environ.get(f"RUNYARD_{name.upper()}")) is not None
    }
    data_dir = _path(given.get("data_dir") or environment.get("data_dir") or DEFAULT_DATA_DIR)
    merged: dict[str, object] = {**_file(config, data_dir), **environment, **given}
    values = {name: _convert(name, value) for name, value in merged.items()}
    settings = replace(Settings(data_dir=data_dir), **values)
    _check(settings)
    return settings


def is_root_path(path: str) -> bool:
    """Empty, or `/a/b`: never something that a browser could take for another host."""
    known = len(path) <= 200 and _ROOT_PATH.fullmatch(path) is not None
    return known and not {".", ".."} & set(path.split("/"))


def client_target(data_dir: str | os.PathLike[str] | None = None) -> tuple[str, str]:
    """(URL, key) a client should use: RUNYARD_URL and RUNYARD_API_KEY, else what the local server
    left in its data directory, else the default address without a key."""
    folder = _path(data_dir or os.environ.get("RUNYARD_DATA_DIR") or DEFAULT_DATA_DIR)
    url = os.environ.get("RUNYARD_URL") or _local_url(folder)
    key = os.environ.get("RUNYARD_API_KEY") or _read(folder / "admin.key").strip()
    return url, key


def _local_url(folder: Path) -> str:
    try:
        return str(json.loads(_read(folder / "server.json"))["url"])
    except (ValueError, KeyError, TypeError):
        return f"http://127.0.0.1:{DEFAULT_PORT}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _names() -> list[str]:
    return [field.name for field in fields(Settings)]


def _file(config: object, data_dir: Path) -> dict[str, object]:
    path = _path(config) if config else data_dir / CONFIG_NAME
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if config:
            raise errors.BadSettings(name="config", why=f"there is no file {path}") from None
        return {}
    except OSError as error:
        raise errors.BadSettings(name="config", why=f"{path}: {error.strerror}") from error
    try:
        found = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise errors.BadSettings(name="config", why=f"{path}: {error}") from error
    for name in found:
        if name not in _names():
            from runyard.domain.nearest_name import nearest  # slow to load, and clients are light

            near = nearest(name, _names())
            meant = f" (did you mean {near}?)" if near else ""
            why = f"{path} names it, and there is no such setting{meant}"
            raise errors.BadSettings(name=name, why=why)
    return found


def _path(value: object) -> Path:
    return Path(os.path.abspath(os.path.expanduser(str(value))))


def _convert(name: str, value: object) -> Any:
    try:
        return _CONVERTERS[str(_HINTS[name])](value)
    except (TypeError, ValueError) as error:
        raise errors.BadSettings(name=name, why=f"{value!r}: {error}") from error


def _items(value: object) -> list[object]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _whole(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ValueError("a whole number is wanted") from None


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise ValueError("a number is wanted") from None


def _truth(value: object) -> bool:
    word = str(value).strip().lower()
    if word not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
        raise ValueError("true or false is wanted")
    return word in ("true", "1", "yes", "on")


def _port_range(value: object) -> tuple[int, int]:
    parts = value.split("-") if isinstance(value, str) else _items(value)
    try:
        first, last = map(_whole, parts)
    except ValueError:
        first, last = 0, 0
    if not 0 < first <= last < 65536:
        raise ValueError("a range of ports such as 38000-38199 is wanted")
    return first, last


_HINTS = get_type_hints(Settings)
_CONVERTERS: dict[str, Any] = {
    str(Path): _path,
    str(str): str,
    str(int): _whole,
    str(bool): _truth,
    str(float): _number,
    str(_HINTS["executors"]): lambda value: tuple(str(item) for item in _items(value)),
    str(_HINTS["retry_delays"]): lambda value: tuple(map(_number, _items(value))),
    str(_HINTS["gpus"]): lambda value: tuple(map(_whole, _items(value))),
    str(_HINTS["port_range"]): _port_range,
}


def _check(settings: Settings) -> None:
    for name, choices in _CHOICES.items():
        if getattr(settings, name) not in choices:
            raise errors.BadSettings(name=name, why=f"one of {', '.join(choices)} is wanted")
    for name in _PERCENT:
        if not 0 < getattr(settings, name) <= 100:
            raise errors.BadSettings(name=name, why="a percentage up to 100 (100 = off) is wanted")
    for name in _NOT_NEGATIVE:
        if getattr(settings, name) < 0:
            raise errors.BadSettings(name=name, why="it cannot be negative")
    for name in _POSITIVE:
        if getattr(settings, name) <= 0:
            raise errors.BadSettings(name=name, why="it must be above zero")
    if unknown := set(settings.detectors_off) - set(DETECTORS):
        why = f"'{min(unknown)}' is none of {', '.join(DETECTORS)}"
        raise errors.BadSettings(name="detectors_off", why=why)
    if not is_root_path(settings.root_path):
        raise errors.BadSettings(name="root_path", why="a path such as /runyard is wanted")
    for mount in settings.docker_mounts:
        if _MOUNT.fullmatch(mount) is None:
            why = f"'{mount}' is not HOST[:INSIDE][:ro] with whole paths"
            raise errors.BadSettings(name="docker_mounts", why=why)
    if _USER.fullmatch(settings.docker_user) is None:
        raise errors.BadSettings(name="docker_user", why="UID:GID, or image, is wanted")
    if not 0 <= settings.port < 65536:
        raise errors.BadSettings(name="port", why="a port is a number from 0 to 65535")
    if not 0 <= settings.job_nice <= 19:
        raise errors.BadSettings(name="job_nice", why="a number from 0 to 19 is wanted")
    for name in ("retry_delays", "notify_retry_delays"):
        delays = getattr(settings, name)
        if any(delay < 0 for delay in delays) or not delays:
            raise errors.BadSettings(name=name, why="at least one delay, none negative")
    if not settings.store_url.startswith(("sqlite:///", "postgresql://")):
        raise errors.BadSettings(
            name="database_url", why="sqlite:///PATH or postgresql://USER@HOST/NAME is wanted"
        )
