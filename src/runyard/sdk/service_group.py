"""The local services of one session: started in order, watched, ended in the opposite order."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from runyard.sdk import errors, service_files, services
from runyard.sdk.follower import View
from runyard.sdk.services import LocalService, RunningService

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0  # one that lived so long begins again with the first pause


class LocalServices:
    """`on_lost` is called, from a thread, when one has ended that the job needs."""

    def __init__(
        self,
        wanted: Sequence[LocalService],
        view: View,
        on_lost: Callable[[errors.LocalServiceFailed], None],
    ) -> None:
        self._wanted = tuple(wanted)
        self._view = view
        self._on_lost = on_lost
        self._running: list[RunningService] = []
        self._over = threading.Event()
        names = [service_files.variable(service.name) for service in self._wanted]
        if len(set(names)) < len(names):
            raise errors.BadRequest("Two local services have the same name.")

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def start(self) -> None:
        """Each is ready before the next one starts, and is told where those before it are."""
        taken: set[int] = set()
        for service in self._wanted:
            urls = self._variables()
            running = RunningService(service, taken)
            self._running.append(running)
            if self._over.is_set():
                running.give_up()
            self._view.service_starting(service.name, running.log)
            running.start(urls)
            self._view.service_ready(service.name, running.url)
            threading.Thread(
                target=self._watch,
                args=(running, urls),
                name=f"runyard-service-{service.name}",
                daemon=True,
            ).start()

    def addresses(self) -> list[dict[str, str]]:
        """For the job's `services`."""
        return [{"name": one.service.name, "url": one.url} for one in self._running]

    def give_up(self) -> None:
        """Starts that are under way fail now."""
        self._over.set()
        for running in self._running:
            running.give_up()

    def stop(self) -> None:
        self.give_up()
        while self._running:
            running = self._running[-1]
            began, lived = time.monotonic(), running.living
            if not running.stop():
                self._view.service_stuck(running.service.name)
            elif lived:
                self._view.service_stopped(running.service.name, time.monotonic() - began)
            self._running.pop()

    def force(self) -> None:
        """End the grace of those that are being stopped."""
        for running in list(self._running):
            running.force()

    def _variables(self) -> dict[str, str]:
        found = {}
        for running in self._running:
            name = service_files.variable(running.service.name)
            found[f"RUNYARD_SERVICE_{name}_URL"] = running.url
            found[f"RUNYARD_PORT_{name}"] = str(running.port)
        return found

    def _watch(self, running: RunningService, urls: dict[str, str]) -> None:
        service, pause_s = running.service, _FIRST_PAUSE_S
        while True:
            began = time.monotonic()
            code = running.wait()
            if self._over.is_set():
                return
            if time.monotonic() - began > _STEADY_S:
                pause_s = _FIRST_PAUSE_S
            restarts = service.restart == "on-failure" and code != 0
            if not restarts or not self._restarted(running, urls, code, pause_s):
                break
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        if not self._over.is_set():
            self._on_lost(services.failed(service.name, "ended", running.log, exit_code=code))

    def _restarted(
        self, running: RunningService, urls: dict[str, str], code: int, pause_s: float
    ) -> bool:
        """Whether it is ready again within the time it has for becoming ready."""
        deadline = time.monotonic() + running.service.ready_timeout_s
        while not self._over.wait(pause_s):
            self._view.service_restarting(running.service.name, code)
            with contextlib.suppress(errors.LocalServiceFailed):
                running.start(urls)
                self._view.service_ready(running.service.name, running.url)
                return True
            if time.monotonic() >= deadline:
                return False
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        return False
