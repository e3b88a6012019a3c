"""Containers of ours as the engine knows them, for the server: found by label, ended, removed.

Uses the engine's Python package; it is imported when an engine is first asked, never before.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runyard.executors import docker_files
from runyard.executors.docker_plan import DockerOptions
from runyard.supervisor import engine_sockets

_ASK_S = 20
_DEATH_S = 15.0
_LOOK_S = 0.05


class EngineUnreachable(Exception):
    """`why` is a stable code, `at` where an engine was looked for."""

    def __init__(self, why: str, at: str = "") -> None:
        super().__init__(f"{why}: {at}" if at else why)
        self.why = why
        self.at = at


@dataclass(frozen=True, slots=True)
class Found:
    """One container of an attempt."""

    container_id: str
    attempt_id: str
    name: str
    state: dict[str, Any]


class Containers:
    def __init__(self, options: DockerOptions, server_id: str) -> None:
        self._sockets = list(options.sockets)
        self._server_id = server_id
        self._lock = threading.Lock()
        self._client: Any = None
        self._socket = ""

    def socket_path(self) -> str:
        """Of an engine that answers now. EngineUnreachable."""
        at = ", ".join(self._sockets)
        if not all(map(engine_sockets.is_local, self._sockets)):
            raise EngineUnreachable("engine_not_local", at)
        found = engine_sockets.answering(self._sockets)
        if found is None:
            raise EngineUnreachable("no_engine", at)
        return found

    def check(self) -> str:
        """The socket of an engine that does what it is asked. EngineUnreachable."""
        path = self.socket_path()
        self._ask(lambda client: client.ping(), path)
        return path

    def of(self, attempt_ids: Iterable[str]) -> dict[str, list[Found]]:
        """What the engine has of these attempts, running or not."""
        wanted = set(attempt_ids)
        found: dict[str, list[Found]] = {attempt_id: [] for attempt_id in wanted}
        for one in self.all():
            if one.attempt_id in wanted:
                found[one.attempt_id].append(one)
        return found

    def all(self) -> list[Found]:
        """Every container that this server made."""
        label = f"{docker_files.SERVER_LABEL}={self._server_id}"

        def ask(client: Any) -> list[Found]:
            rows = client.api.containers(all=True, filters={"label": label})
            return [
                Found(
                    container_id=row["Id"],
                    attempt_id=row["Labels"].get(docker_files.ATTEMPT_LABEL, ""),
                    name=(row["Names"] or [""])[0].lstrip("/"),
                    state={"State": row.get("State"), "Status": row.get("Status")},
                )
                for row in rows
            ]

        result: list[Found] = self._ask(ask)
        return result

    def has_image(self, image: str) -> bool:
        from docker.errors import NotFound

        def ask(client: Any) -> bool:
            try:
                client.api.inspect_image(image)
            except NotFound:
                return False
            return True

        found: bool = self._ask(ask)
        return found

    def inspect(self, container_id: str) -> dict[str, Any] | None:
        from docker.errors import NotFound

        def ask(client: Any) -> dict[str, Any] | None:
            try:
                found: dict[str, Any] = client.api.inspect_container(container_id)
            except NotFound:
                return None
            return found

        seen: dict[str, Any] | None = self._ask(ask)
        return seen

    def kill(self, container_id: str) -> dict[str, Any] | None:
        """Kill it and wait until it has ended; what is known of it then, None where it is gone.
        TimeoutError if it does not die."""
        from docker.errors import APIError, NotFound

        def ask(client: Any) -> None:
            with contextlib.suppress(NotFound):
                try:
                    client.api.kill(container_id, "SIGKILL")
                except APIError as error:
                    # What has ended cannot be killed: Docker says 409, podman 500.
                    seen = client.api.inspect_container(container_id)
                    if error.status_code != 409 and seen["State"]["Running"]:
                        raise

        self._ask(ask)
        deadline = time.monotonic() + _DEATH_S
        while (seen := self.inspect(container_id)) is not None and seen["State"]["Running"]:
            if time.monotonic() >= deadline:
                raise TimeoutError(container_id)
            time.sleep(_LOOK_S)
        return seen

    def remove(self, container_id: str) -> None:
        """Until the engine has nothing of it. TimeoutError if that takes too long."""
        from docker.errors import APIError

        def ask(client: Any) -> None:
            try:
                client.api.remove_container(container_id, v=True, force=True)
            except APIError as error:
                if error.status_code not in (404, 409):  # 409: somebody else is removing it
                    raise

        self._ask(ask)
        deadline = time.monotonic() + _DEATH_S
        while self.inspect(container_id) is not None:
            if time.monotonic() >= deadline:
                raise TimeoutError(container_id)
            time.sleep(_LOOK_S)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _ask(self, work: Any, path: str = "") -> Any:
        try:
            import docker
            from docker.errors import DockerException
        except ImportError:
            raise EngineUnreachable("docker_package_missing") from None
        path = path or self.socket_path()
        with self._lock:
            if self._client is None or self._socket != path:
                try:
                    self._client = docker.DockerClient(
                        f"unix://{path}", version="auto", timeout=_ASK_S
                    )
                except (DockerException, OSError) as error:
                    raise EngineUnreachable("engine_does_not_answer", path) from error
                self._socket = path
            client = self._client
        try:
            return work(client)
        except (DockerException, OSError) as error:
            raise EngineUnreachable("engine_does_not_answer", path) from error
