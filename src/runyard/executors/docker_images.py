"""Images that jobs need, brought before they are given anything."""

from __future__ import annotations

import sys
from pathlib import Path

from runyard.executors.base import ExecutorUnavailable
from runyard.executors.docker_containers import Containers, EngineUnreachable

_PROGRAM = str(Path(__file__).resolve().with_name("docker_pull.py"))


class DockerImages:
    """See executors/base.py. Who pulls what another pull is bringing shares it: the engine does
    that, and goes on until the last of them has left."""

    def __init__(self, containers: Containers, pull: str) -> None:
        self._containers = containers
        self._pull = pull  # as the setting says: missing, always, never

    def is_here(self, image: str) -> bool:
        if self._pull == "never":
            return True  # or the engine says that it is not
        if self._pull == "always":
            return False
        try:
            return self._containers.has_image(image)
        except EngineUnreachable as error:
            raise ExecutorUnavailable(str(error)) from error

    def pull(self, image: str, progress_file: str) -> tuple[str, ...]:
        try:
            socket_path = self._containers.socket_path()
        except EngineUnreachable as error:
            raise ExecutorUnavailable(str(error)) from error
        return (sys.executable, "-I", _PROGRAM, socket_path, image, progress_file)
