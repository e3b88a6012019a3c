"""Attempts in containers of a Docker or podman engine on this machine.

Each is an ordinary supervised attempt whose main process is a runner (docker_runner.py) that
stands for the container. Journal, news, adoption, stops and log are the local executor's; what is
added here is the proof that the engine has nothing of an attempt any more before its end is told.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.executors import docker_ends, docker_files, docker_plan, docker_settling
from runyard.executors.attempt_folders import AttemptFolders
from runyard.executors.base import (
    End,
    ExecutorUnavailable,
    Launch,
    News,
    NewsKind,
    ServiceLaunch,
    Sight,
    Sighting,
    Stop,
    Swept,
    Usage,
)
from runyard.executors.docker_containers import Containers, EngineUnreachable
from runyard.executors.docker_images import DockerImages
from runyard.executors.docker_plan import DockerOptions, Owner, PlanRefused
from runyard.executors.docker_usage import ContainerUsage
from runyard.executors.local import LocalExecutor
from runyard.executors.supervisor_news import news_of
from runyard.supervisor import protocol, stop_request
from runyard.supervisor.stack_dump import Dump

_RUNNER = str(Path(__file__).resolve().with_name("docker_runner.py"))
# How long after the grace the runner may still be at work before the supervisor kills it.
_RUNNER_MARGIN_S = 20.0
_STRAYS_EVERY_S = 60.0
_AGAIN_S = 2.0
# The runner's own; the job has the image's.
_RUNNER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class DockerExecutor:
    """See executors/base.py for the promises."""

    name = "docker"

    def __init__(
        self, local: LocalExecutor, data_dir: Path, server_id: str, options: DockerOptions
    ) -> None:
        self._local = local
        self._folders = AttemptFolders(data_dir)
        self._data_dir = data_dir
        self._server_id = server_id
        self._options = options
        self._containers = Containers(options, server_id)
        self.images = DockerImages(self._containers, options.pull)
        self._usage = ContainerUsage(self._folders.of)
        self._hear: Callable[[News], None] = lambda _: None
        self._closing = threading.Event()
        self._settling = threading.Lock()
        self._strays_due = 0.0
        local.guests.append(self)

    # the port

    def open(self, hear: Callable[[News], None]) -> None:
        self._hear = hear

    def close(self, *, keep: bool) -> None:  # noqa: ARG002
        self._closing.set()
        self._containers.close()

    def available(self) -> tuple[bool, str]:
        try:
            self._containers.check()
        except EngineUnreachable as error:
            return False, str(error)
        self._look_for_strays()
        return True, ""

    def nodes(self) -> None:
        return None

    def start(self, launch: Launch) -> None:
        try:
            owner = Owner(self._server_id, self._containers.socket_path(), str(self._data_dir))
        except EngineUnreachable as error:
            raise ExecutorUnavailable(str(error)) from error
        folder = self._folders.of(launch.attempt_id)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            plan = docker_plan.main_plan(launch, owner, self._options)
            for service in launch.services:
                of_service = docker_plan.service_plan(launch, service, owner, self._options)
                docker_files.write(folder, f"{service.name}-{docker_files.PLAN}", of_service)
        except PlanRefused as error:
            plan = {"refused": {"path": error.filename, "message": error.strerror}}
            launch = replace(launch, services=())
        docker_files.write(folder, docker_files.PLAN, plan)
        self._local.start(self._supervised(launch, folder))

    def refuse(self, attempt_id: str) -> bool:
        return self._local.refuse(attempt_id)

    def stop(self, attempt_id: str, stop: Stop) -> None:
        self._local.stop(attempt_id, stop)

    def inspect(self, attempt_ids: Sequence[str]) -> dict[str, Sighting]:
        seen = self._local.inspect(attempt_ids)
        return {name: self._with_container(name, sighting) for name, sighting in seen.items()}

    def sweep(self, attempt_ids: Sequence[str]) -> dict[str, Swept]:
        swept = self._local.sweep(attempt_ids)
        asked = [n for n in attempt_ids if stop_request.read(self._folders.of(n)) is not None]
        return self._sweep_containers(swept, asked)

    def sweep_traceless(self, attempts: Mapping[str, tuple[int, float]]) -> dict[str, Swept]:
        return self._sweep_containers(self._local.sweep_traceless(attempts), list(attempts))

    def usage(self, attempt_ids: Sequence[str]) -> dict[str, Usage]:
        return self._usage.of(attempt_ids)

    def log_path(self, attempt_id: str, service: str = "", rank: int = 0) -> str:
        return self._local.log_path(attempt_id, service, rank)

    def services(self, attempt_id: str) -> list[dict[str, Any]]:
        return self._local.services(attempt_id)

    def ranks(self, attempt_id: str) -> list[dict[str, Any]]:
        return self._local.ranks(attempt_id)

    def stacks(self, attempt_id: str, seconds: float) -> list[Dump]:
        return self._local.stacks(attempt_id, seconds)

    def remove(self, attempt_id: str) -> None:
        if not docker_settling.gone(self._folders.of(attempt_id)):
            with contextlib.suppress(EngineUnreachable, TimeoutError):
                for one in self._containers.of([attempt_id])[attempt_id]:
                    self._containers.remove(one.container_id)
        self._local.remove(attempt_id)

    def touched_at(self, attempt_id: str) -> float:
        return self._local.touched_at(attempt_id)

    def known(self) -> list[str]:
        return [attempt_id for attempt_id in self._folders.ids() if self.owns(attempt_id)]

    # what the local executor asks its guest

    def owns(self, attempt_id: str) -> bool:
        return protocol.valid_attempt_id(attempt_id) and os.path.exists(
            f"{self._folders.of(attempt_id)}/{docker_files.PLAN}"
        )

    def heard(self, told: dict[str, Any]) -> None:
        """The start that counts is the container's; the end waits for the container's."""
        if told["kind"] == "started":
            return
        if told["kind"] == "container_started":
            at = float(told["started_at"])
            self._hear(News(str(told["attempt_id"]), NewsKind.STARTED, at))
            return
        news = news_of(told)
        if news is None:
            return
        if news.kind is not NewsKind.ENDED or news.end is None:
            self._hear(news)
        elif self._is_settled(news.attempt_id, news.end):
            self._hear(replace(news, end=self._merged(news.attempt_id, news.end)))
        else:
            name = f"settle {news.attempt_id}"
            threading.Thread(target=self._settle, args=(news,), name=name, daemon=True).start()

    # inside

    def _supervised(self, launch: Launch, folder: str) -> Launch:
        """The runner instead of the job; limits and isolation are the container's."""
        shown = (protocol.MARKER, protocol.STOP_FILE)
        env = {name: launch.env[name] for name in shown if name in launch.env}
        return replace(
            launch,
            argv=_runner(f"{folder}/{docker_files.PLAN}"),
            env={"PATH": _RUNNER_PATH, "HOME": os.path.expanduser("~"), **env},
            cwd=str(self._data_dir),
            services=tuple(_service(service, folder) for service in launch.services),
            slices=(),
            memory_limit_mb=None,
            memory_soft=False,
            pids_limit=None,
            own_group=False,
            cpus=None,
            nice=0,
            tty=False,
            isolation="none",
            extra={**launch.extra, "main_margin_s": _RUNNER_MARGIN_S},
        )

    def _with_container(self, attempt_id: str, seen: Sighting) -> Sighting:
        folder = self._folders.of(attempt_id)
        if seen.sight is Sight.ENDED and seen.end is not None:
            if not self._is_settled(attempt_id, seen.end):
                kept = self._try_to_settle(attempt_id)
                if kept:
                    return Sighting(Sight.STOPPING, started_at=seen.end.started_at, stuck=kept)
            return replace(seen, end=self._merged(attempt_id, seen.end))
        if seen.sight is Sight.RUNNING:
            started = docker_files.read(folder, docker_files.STARTED)
            if started is None:
                return replace(seen, sight=Sight.STARTING, started_at=None, pid=None)
            return replace(seen, started_at=started["started_at"], pid=started["pid"] or None)
        return seen

    def _is_settled(self, attempt_id: str, end: End) -> bool:
        """Whether the engine is known to have nothing of it: also where no runner ever ran."""
        folder = self._folders.of(attempt_id)
        if docker_settling.gone(folder) or not self.owns(attempt_id):
            return True
        return end.started_at is None and not self._local.services(attempt_id)

    def _merged(self, attempt_id: str, end: End) -> End:
        folder = self._folders.of(attempt_id)
        container = docker_files.read(folder, docker_files.END)
        if container is None:
            return end
        plan = docker_files.read(folder, docker_files.PLAN) or {}
        memory = plan.get("body", {}).get("HostConfig", {}).get("Memory", 0) // (1024 * 1024)
        return docker_ends.merged(end, container, memory or None)

    def _settle(self, news: News) -> None:
        """Until it is done, in a thread of its own; inspecting does the same meanwhile."""
        assert news.end is not None
        told = False
        while not self._closing.is_set():
            kept = self._try_to_settle(news.attempt_id)
            if not kept:
                self._hear(replace(news, end=self._merged(news.attempt_id, news.end)))
                return
            if not told:
                told = True
                self._hear(News(news.attempt_id, NewsKind.STUCK, time.time(), stuck=kept))
            self._closing.wait(_AGAIN_S)

    def _try_to_settle(self, attempt_id: str) -> tuple[Mapping[str, Any], ...]:
        """Empty when the engine has nothing of it any more, else what is in the way."""
        folder = self._folders.of(attempt_id)
        with self._settling:
            if docker_settling.gone(folder):
                return ()
            found = []
            try:
                found = self._containers.of([attempt_id])[attempt_id]
                docker_settling.settle(self._containers, folder, found)
            except (EngineUnreachable, TimeoutError) as error:
                return docker_settling.stuck(error, found)
        return ()

    def _sweep_containers(self, swept: dict[str, Swept], ids: Sequence[str]) -> dict[str, Swept]:
        if not ids:
            return swept
        with contextlib.suppress(EngineUnreachable):
            for attempt_id, found in self._containers.of(ids).items():
                before = swept.get(attempt_id, Swept())
                killed, living = 0, list(before.living)
                for one in found:
                    try:
                        self._containers.kill(one.container_id)
                        killed += 1
                    except TimeoutError as error:
                        living += docker_settling.stuck(error, [one])
                    if not os.path.exists(self._folders.of(attempt_id)):
                        self._containers.remove(one.container_id)
                swept[attempt_id] = Swept(before.killed + killed, tuple(living))
        return swept

    def _look_for_strays(self) -> None:
        """Containers of ours whose attempt has ended, or of which no folder is left."""
        now = time.monotonic()
        if now < self._strays_due:
            return
        self._strays_due = now + _STRAYS_EVERY_S
        with contextlib.suppress(EngineUnreachable, TimeoutError):
            for one in self._containers.all():
                folder = self._folders.of(one.attempt_id)
                if not os.path.exists(folder) or docker_settling.gone(folder):
                    self._containers.remove(one.container_id)


def _runner(plan: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", _RUNNER, plan)


def _service(service: ServiceLaunch, folder: str) -> ServiceLaunch:
    plan = f"{folder}/{service.name}-{docker_files.PLAN}"
    return replace(service, argv=_runner(plan), env={})
