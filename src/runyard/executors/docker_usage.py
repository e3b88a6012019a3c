"""What attempts in containers use: the processes below the first one of their container."""

from __future__ import annotations

from collections.abc import Callable

from runyard.executors import docker_files
from runyard.executors.process_usage import ProcessUsage, Root


class ContainerUsage(ProcessUsage):
    """Where the engine's processes are visible from here; elsewhere nothing can be told."""

    def __init__(self, folder_of: Callable[[str], str]) -> None:
        super().__init__(folder_of, counts_root=True)

    def _find_root(self, attempt_id: str) -> Root | None:
        folder = self._folder_of(attempt_id)
        started = docker_files.read(folder, docker_files.STARTED)
        if not started or not started.get("pid") or not started.get("start_ticks"):
            return None
        return Root(int(started["pid"]), int(started["start_ticks"]))
