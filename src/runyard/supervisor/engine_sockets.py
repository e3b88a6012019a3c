"""Where a container engine listens: as configured, else the usual places of Docker and podman."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

OFF = "off"
_UNIX = "unix://"
_CONNECT_S = 2.0


def candidates(configured: str, environment: Mapping[str, str], uid: int) -> list[str]:
    """Paths of sockets, the first that answers is taken. What was configured is the only one."""
    given = configured or environment.get("DOCKER_HOST", "")
    if given:
        return [given.removeprefix(_UNIX)]
    return usual(environment, uid)


def usual(environment: Mapping[str, str], uid: int) -> list[str]:
    """Of Docker and podman, the machine's own and the user's."""
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    return [
        "/var/run/docker.sock",
        f"{runtime}/docker.sock",
        "/run/podman/podman.sock",
        f"{runtime}/podman/podman.sock",
    ]


def answering(paths: list[str]) -> str | None:
    """The first of them that somebody listens at."""
    return next((path for path in paths if listens(path)), None)


def listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_S)
        try:
            probe.connect(path)
        except (OSError, ValueError):
            return False
    return True


def is_local(path: str) -> bool:
    """An engine elsewhere has none of our folders: only sockets of this machine will do."""
    return os.path.isabs(path)
