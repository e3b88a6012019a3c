"""From a launch to what the engine is asked for, and to the plan its runner works by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.executors import docker_files
from runyard.executors.base import ContainerLaunch, Launch, ServiceLaunch
from runyard.supervisor import engine_sockets, protocol

WORKSPACE = "/workspace"
IMAGE_USER = "image"
_HOST_NETWORK = "host"
_MB = 1024 * 1024
_MOST_LINKS = 1000
# The job opens the log by itself: what it writes needs neither us nor the engine to arrive. The
# limit is the attempt's tag, by which the server knows its processes from outside: -w in dash and
# busybox, -x in bash. As a limit of the engine's it would replace podman's default limits.
_WRAPPER = (
    'exec >>"$1" 2>&1 </dev/null || exit 125; echo $$ >"$2"; '
    'ulimit -w "$3" 2>/dev/null || ulimit -x "$3" 2>/dev/null; shift 3; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class DockerOptions:
    """What the settings say about containers."""

    sockets: tuple[str, ...] = ()  # of engines: the first that answers
    other_sockets: tuple[str, ...] = ()  # of engines that are never asked, and never inside
    network: str = "bridge"
    user: str = ""  # empty: the server's own; image: the image's; else UID:GID
    shm_mb: int = 0  # 0: as much as it has memory, half of the machine's without a limit
    mounts: tuple[str, ...] = ()  # HOST[:INSIDE][:ro], into every container
    pull: str = "missing"


class PlanRefused(OSError):
    """It must not run like this."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose containers these are, and by which engine."""

    server_id: str
    socket: str
    data_dir: str


@dataclass(frozen=True, slots=True)
class _Program:
    """What one container of an attempt runs; its files are at the same paths outside."""

    service: str  # empty: the job itself
    argv: tuple[str, ...]
    env: Mapping[str, str]
    grace_s: float
    log: str
    pid_file: str


def main_plan(launch: Launch, owner: Owner, options: DockerOptions) -> dict[str, Any]:
    """The plan of the runner of an attempt's main container."""
    if launch.services and options.network != _HOST_NETWORK:
        message = "services of containers need docker_network = host"
        raise PlanRefused(22, message, launch.services[0].name)
    folder = protocol.attempt_folder(owner.data_dir, launch.attempt_id)
    argv, env = _command(launch)
    pid_file = f"{folder}/{docker_files.MAIN_PID}"
    program = _Program("", argv, env, launch.grace_s, f"{folder}/{protocol.LOG}", pid_file)
    return _plan(launch, program, owner, options)


def _command(launch: Launch) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Of a distributed job, those of its slice on this machine."""
    if not launch.slices:
        return launch.argv, launch.env
    [part] = launch.slices
    if len(part.ranks) > 1:
        message = "several processes in one container need launcher: torchrun"
        raise PlanRefused(22, message, "distributed")
    of_rank = part.ranks[0].env if part.ranks else {}
    return part.argv, {**launch.env, **part.env, **of_rank}


def service_plan(
    launch: Launch, service: ServiceLaunch, owner: Owner, options: DockerOptions
) -> dict[str, Any]:
    """The same for one of its services, which ends soon after it is asked to."""
    folder = protocol.attempt_folder(owner.data_dir, launch.attempt_id)
    log = f"{folder}/{protocol.service_log(service.name)}"
    env = {**launch.env, **service.env}
    grace_s = max(0.0, launch.leftover_grace_s - 1.0)
    program = _Program(service.name, service.argv, env, grace_s, log, f"{log}.pid")
    return _plan(launch, program, owner, options)


def _plan(
    launch: Launch, program: _Program, owner: Owner, options: DockerOptions
) -> dict[str, Any]:
    container = _container(launch)
    names = ("runyard", owner.server_id, launch.attempt_id, program.service)
    return {
        "attempt_id": launch.attempt_id,
        "service": program.service,
        "socket": owner.socket,
        "name": "-".join(filter(None, names)),
        "image": container.image,
        "pull": options.pull,
        "grace_s": program.grace_s,
        "log": program.log,
        "pid_file": program.pid_file,
        "own_user": not options.user,
        "open": _own_folders(container) if options.user else [],
        "body": _body(launch, program, owner, options),
    }


def _body(
    launch: Launch, program: _Program, owner: Owner, options: DockerOptions
) -> dict[str, Any]:
    container = _container(launch)
    folder = protocol.attempt_folder(owner.data_dir, launch.attempt_id)
    env = _environment(launch, program.env, folder)
    given = (program.log, program.pid_file, str(launch.tag))
    asked: dict[str, Any] = {
        "Image": container.image,
        "Entrypoint": ["/bin/sh", "-c", _WRAPPER, "sh", *given],
        "Cmd": list(program.argv),
        "Env": [f"{name}={value}" for name, value in env.items()],
        "WorkingDir": launch.cwd,
        "Labels": {
            docker_files.ATTEMPT_LABEL: launch.attempt_id,
            docker_files.JOB_LABEL: launch.job_ref,
            docker_files.SERVER_LABEL: owner.server_id,
        },
        "HostConfig": _host_config(launch, container, folder, owner, options),
    }
    if options.user != IMAGE_USER:
        asked["User"] = options.user or f"{os.getuid()}:{os.getgid()}"
    if container.ports and _is_published(options.network):
        asked["ExposedPorts"] = {f"{port}/tcp": {} for port in container.ports}
    return asked


def _host_config(
    launch: Launch,
    container: ContainerLaunch,
    folder: str,
    owner: Owner,
    options: DockerOptions,
) -> dict[str, Any]:
    memory = (container.memory_mb or 0) * _MB
    cores = os.cpu_count() or 1
    config: dict[str, Any] = {
        "Init": True,
        "NetworkMode": options.network,
        "Mounts": _mounts(container, folder, owner, options),
        "SecurityOpt": ["no-new-privileges:true"],
        "Privileged": False,
        "NanoCpus": min(container.cpu_milli, cores * 1000) * 1_000_000,
        "ShmSize": options.shm_mb * _MB or memory or _half_of_the_machines_memory(),
        # Only for what goes wrong before the job has its own log.
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
    }
    if memory:
        config["Memory"] = config["MemorySwap"] = memory
    if launch.pids_limit:
        config["PidsLimit"] = launch.pids_limit
    if launch.gpu_uuids:
        ids = list(launch.gpu_uuids)
        config["DeviceRequests"] = [{"DeviceIDs": ids, "Capabilities": [["gpu"]]}]
    if container.ports and _is_published(options.network):
        config["PortBindings"] = {
            f"{port}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]
            for port in container.ports
        }
    return config


def _environment(launch: Launch, env: Mapping[str, str], folder: str) -> dict[str, str]:
    """PATH and the like are the image's. A user that the image does not know has no home there."""
    given = {"HOME": f"{folder}/{protocol.TEMPORARY}", **env}
    if not launch.gpu_uuids:
        given["NVIDIA_VISIBLE_DEVICES"] = "void"  # whatever the image asks for
    return given


def _mounts(
    container: ContainerLaunch, folder: str, owner: Owner, options: DockerOptions
) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for text in options.mounts:
        source, target, read_only = _parsed_mount(text)
        found[target] = _mount(source, target, read_only=read_only)
    if container.workspace:
        found[WORKSPACE] = _mount(container.workspace, WORKSPACE)
    own = [folder, *_own_folders(container)]
    for place in own:
        found[place] = _mount(place, place)
    for place in container.read_only:
        for target in (place, *_link_targets(place)):
            # A checkpoint of its own that it resumes from is its own to replace and to remove,
            # which the kernel forbids where something is mounted.
            if not any(_holds(one, target) for one in own):
                found.setdefault(target, _mount(target, target, read_only=True))
    for name in (protocol.JOURNAL, docker_files.PLAN):
        target = f"{folder}/{name}"
        found[target] = _mount(target, target, read_only=True)
    _refuse_engines([mount["Source"] for mount in found.values()], owner, options)
    return list(found.values())


def _refuse_engines(sources: list[str], owner: Owner, options: DockerOptions) -> None:
    """Who has an engine has the machine: also one that is not ours, or not started yet."""
    sockets = (owner.socket, *options.sockets, *options.other_sockets)
    for source in sources:
        if any(_holds(source, path) for path in filter(engine_sockets.is_local, sockets)):
            message = "an engine's socket would be inside the container"
            raise PlanRefused(13, message, source)


def _own_folders(container: ContainerLaunch) -> list[str]:
    return list(dict.fromkeys(filter(None, (container.workspace, *container.writable))))


def _mount(source: str, target: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def _parsed_mount(text: str) -> tuple[str, str, bool]:
    parts = text.split(":")
    read_only = parts[-1] == "ro"
    parts = parts[:-1] if read_only else parts
    return parts[0], parts[-1], read_only


def _link_targets(folder: str) -> list[str]:
    """What links below it lead to: inside they must lead there too."""
    found: list[str] = []
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            if os.path.islink(path) and len(found) < _MOST_LINKS:
                found.append(os.path.realpath(path))
    return [path for path in dict.fromkeys(found) if os.path.exists(path)]


def _holds(folder: str, path: str) -> bool:
    """Whether who has `folder` has `path`."""
    held, path = os.path.realpath(folder), os.path.realpath(path)
    return os.path.commonpath((held, path)) == held


def _is_published(network: str) -> bool:
    return network not in (_HOST_NETWORK, "none") and not network.startswith("container:")


def _half_of_the_machines_memory() -> int:
    """What a tmpfs is made with, as on the machine itself: nothing of it is taken in advance."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _container(launch: Launch) -> ContainerLaunch:
    if launch.container is None:
        raise PlanRefused(22, "it has no image", launch.attempt_id)
    return launch.container
