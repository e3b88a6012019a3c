"""Where the executor contract runs: processes of this machine, and containers of an engine."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from docker_engine import IMAGE, DockerEngine, host_places
from runyard.executors.base import ContainerLaunch, Launch
from runyard.executors.docker import DockerExecutor
from runyard.executors.docker_plan import DockerOptions
from runyard.executors.local import LocalExecutor
from runyard.supervisor import journal, process_table
from runyard.testing.executor_place import ExecutorPlace
from yards import keepers_of, until


class LocalPlace(ExecutorPlace):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.data = folder / "data"
        (self.data / "attempts").mkdir(parents=True)

    def make(self) -> Any:
        return LocalExecutor(self.data, "node-1", self.data / "locks")

    def living(self, attempt_id: str) -> list[str]:
        """By the tag and the marker that every process of an attempt has."""
        marker = f"RUNYARD_ATTEMPT_ID={attempt_id}".encode()
        record = self.records(attempt_id)
        tag = record.spec["tag"] if record and record.spec else None
        found = []
        for pid in process_table.pids():
            environment = process_table.read(f"/proc/{pid}/environ") or b""
            if marker in environment.split(b"\0") or (tag and process_table.tag(pid) == tag):
                found.append(f"process {pid}")
        return found

    def records(self, attempt_id: str) -> journal.Journal | None:
        try:
            return journal.read(f"{self.data}/attempts/{attempt_id}")
        except FileNotFoundError:
            return None

    def kill_watcher(self, attempt_id: str) -> None:
        os.kill(self._supervisor(attempt_id), signal.SIGKILL)

    def freeze_watcher(self, attempt_id: str) -> None:
        pid = self._supervisor(attempt_id)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: process_table.describe(pid)["state"] == "T")

    def _supervisor(self, attempt_id: str) -> int:
        record = self.records(attempt_id)
        assert record is not None
        assert record.supervisor is not None
        return int(record.supervisor["pid"])

    def leave(self) -> None:
        until(lambda: not keepers_of(self.data), words="the keeper leaves")


class DockerPlace(LocalPlace):
    """In the host's network, where what is at a port can be asked."""

    def __init__(self, folder: Path, engine: DockerEngine, network: str = "host") -> None:
        super().__init__(folder)
        self.engine = engine
        self.options = DockerOptions(
            sockets=(engine.socket_path,),
            network=network,
            mounts=tuple(f"{place}:ro" for place in host_places()),
        )

    def make(self) -> Any:
        return _Both(super().make(), self.data, self.options)

    def launch(self, number: int, script: str, **changes: Any) -> Launch:
        outside = super().launch(number, script, **changes)
        container = ContainerLaunch(IMAGE, cpu_milli=1000, writable=(str(self.folder),))
        return replace(outside, image=IMAGE, container=container)

    def limited(self, launch: Launch, memory_mb: int) -> Launch:
        assert launch.container is not None
        return replace(launch, container=replace(launch.container, memory_mb=memory_mb))

    def tells(self, end: Any, number: signal.Signals) -> bool:
        return super().tells(end, number) or end.code == 128 + number

    def living(self, attempt_id: str) -> list[str]:
        listed = self.engine.docker(
            *("ps", "--all", "--quiet", "--filter", f"label=runyard.attempt={attempt_id}")
        )
        return super().living(attempt_id) + listed.stdout.split()


class _Both(DockerExecutor):
    """With the local executor that it is a guest of, opened and closed together."""

    def __init__(self, local: LocalExecutor, data: Path, options: DockerOptions) -> None:
        super().__init__(local, data, "node-1", options)
        self.host = local

    def open(self, hear: Any) -> None:
        self.host.open(hear)
        super().open(hear)

    def available(self) -> tuple[bool, str]:
        usable, why = self.host.available()
        return super().available() if usable else (usable, why)

    def close(self, *, keep: bool) -> None:
        super().close(keep=keep)
        self.host.close(keep=keep)
