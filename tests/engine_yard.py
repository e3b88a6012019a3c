"""A yard for tests of the engine: a real store, a scripted executor, and no tick to rely on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from runyard.engine.access.actor import Actor
from runyard.executors.base import Executor, Images
from runyard.settings import Settings
from runyard.stores.base import JobFilter, Store
from runyard.stores.opening import open_store
from runyard.wire.jobs import read_job
from scripted_executor import ScriptedExecutor
from scripted_machine import ScriptedMachine
from scripted_yard import compose
from yards import until

ANN = Actor("ann", "admin", 1)
BOB = Actor("bob", "user", 2)
SMALL = {"cpu_cores": 0.01, "memory_gb": 0.01, "gpu_count": 0, "max_retries": 0}
# Whatever happens in a test happens because something woke the loop that does it.
NEVER_S = 3600.0


class Clock:
    """The true time, plus what a test has let pass."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class EngineYard:
    def __init__(
        self,
        folder: Path,
        *,
        executor: Executor | None = None,
        machine: ScriptedMachine | None = None,
        node_id: str = "node-1",
        others: Sequence[Executor] = (),
        images: Images | None = None,
        wrap=lambda store: store,
        **settings,
    ) -> None:
        folder.mkdir(exist_ok=True, parents=True)
        # Its executor runs nothing, so that nothing would answer a preflight.
        wanted = {"max_concurrent": 4, "retry_delays": (600.0,), "node_name": node_id}
        wanted = {"preflight": "off", **wanted, **settings}
        self.settings = Settings(
            data_dir=folder,
            resource_check_interval=NEVER_S,
            reconcile_interval=NEVER_S,
            **wanted,
        )
        self.clock = Clock()
        self.executor = executor or ScriptedExecutor(folder / "attempts")
        self.machine = machine or ScriptedMachine()
        self.node_id = node_id
        self._others = others
        self._images = images
        self._wrap = wrap
        self._compose()

    def _compose(self) -> None:
        self.store: Store = self._wrap(open_store(self.settings.store_url))
        self.parts, self.yard = compose(
            self.settings,
            self.store,
            self.executor,
            self.machine,
            self.node_id,
            self.clock,
            self._others,
            self._images,
        )

    # life

    def open(self) -> EngineYard:
        self.yard.open()
        return self

    def close(self) -> None:
        if self.yard is not None:
            self.yard.close(keep=True)
            self.store.close()
            self.yard = None

    def restart(self) -> EngineYard:
        """A new server on the same database; the executor's attempts have gone on."""
        self.close()
        self._compose()
        return self.open()

    # jobs

    def submit(self, command="true", *, actor=ANN, idempotency=None, **fields) -> str:
        [job] = self.submit_all([{"command": command, **fields}], actor, idempotency)
        return job.ref

    def submit_all(self, bodies, actor=ANN, idempotency=None):
        asked = [read_job({**SMALL, **body}).to_submission() for body in bodies]
        return self.yard.submit(asked, actor, idempotency)

    def job(self, ref):
        return self.yard.job(ref).job

    def refs(self) -> list[str]:
        """Of all jobs, newest first."""
        page, _ = self.yard.jobs(JobFilter(), 1000, None)
        return [job.ref for job in page.jobs]

    def status(self, ref) -> str:
        return self.job(ref).status.value

    def reason(self, ref):
        """What a person is shown: (code, params)."""
        reason = self.yard.job(ref).reason
        return (None, {}) if reason is None else (reason.code, dict(reason.params))

    def wait(self, ref, *statuses):
        """Until the job is in one of these; far sooner than any tick."""
        until(lambda: self.status(ref) in statuses, 60, lambda: self._seen(ref), every=0.005)
        return self.job(ref)

    def wait_reason(self, ref, code):
        until(lambda: self.reason(ref)[0] == code, 60, lambda: self._seen(ref), every=0.005)
        return self.reason(ref)[1]

    def running(self, command="true", **fields) -> str:
        ref = self.submit(command, **fields)
        self.wait(ref, "running")
        return ref

    def finish(self, ref, code=0, **how) -> None:
        """End its newest attempt."""
        self.executor.finish(self.job(ref).attempt_id(), code, **how)

    def attempts(self, ref):
        return self.yard.attempts(ref)

    def events(self, ref) -> list[str]:
        return [stored.event.code for stored in self.yard.events(ref)]

    def look(self, ahead: float = 0.0) -> None:
        """Reconcile now, so many seconds later."""
        self.clock.ahead += ahead
        self.executor.ask_to_look()

    def let_time_pass(self, condition) -> None:
        """Minutes at a time, for the scheduler, until something has happened."""

        def later() -> bool:
            if condition():
                return True
            self.clock.ahead += 300
            self.yard.runtime.wake()
            return False

        until(later, 60, condition, every=0.005)

    def _seen(self, ref):
        return self.status(ref), self.reason(ref)
