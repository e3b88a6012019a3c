"""A GPU goes to the next job only when the memory of the last one is proven back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runyard.domain.job import Attempt
from runyard.domain.monitoring.alert import GPU_MEMORY_HELD, AlertLevel, NewAlert
from runyard.domain.resources import GpuGrant
from runyard.domain.states import AttemptStatus
from runyard.engine import server_log
from runyard.engine.cancel import cancel_reasons
from runyard.engine.end.gpu_before import MemoryBefore
from runyard.engine.parts import Parts
from runyard.engine.watch import alerting
from runyard.executors.base import End, News

_POLL_S = 0.1
# A driver needs a moment; what takes longer is told to who looks, and then to everybody.
_SAY_AFTER_S = 0.5
_ALERT_AFTER_S = 5.0
_ACTOR = "gpus"
# A driver keeps a little for itself, and it varies.
_TOLERANCE_MB = 256
# Where nobody knows what was used before: so little is as good as nothing, and so long is waited.
_LOW_MB = 1024
_UNKNOWN_PATIENCE_S = 30.0

Ends = list[tuple[str, End]]


class GpuReturn:
    def __init__(self, parts: Parts, tag_of: Callable[[int], int | None]) -> None:
        self._parts = parts
        self._tag_of = tag_of
        self._before = MemoryBefore(parts.store)
        self._tidied = False
        # attempt -> gpu uuid -> MB, as last seen while it ran
        self._used: dict[str, dict[str, int]] = {}
        self._waiting: set[str] = set()
        self._alerted_of_nodes: set[str] = set()
        self._lock = threading.Lock()
        self.stopping = False

    def remember(self, attempt: Attempt) -> None:
        """Note what the GPUs hold before an attempt starts. Those of an executor's own nodes are
        read there: it tells an end when they are back, and until then what is not."""
        if attempt.gpus and not attempt.slices:
            used = {grant.uuid: self._parts.machine.used_mb(grant.uuid) for grant in attempt.gpus}
            self._before.remember(attempt.attempt_id, used)

    def note_use(self) -> None:
        """What running attempts hold now, for their receipts."""
        if not self._parts.machine.capacity.gpus:
            return
        if not self._tidied:
            self._tidied = True
            self._before.forget_ended()
        with self._parts.store.read() as reader:
            running = reader.live_attempts(self._parts.node_id)
        for attempt in running:
            self._note(attempt)

    def note_use_of(self, attempt_id: str) -> None:
        """It is about to be asked to end."""
        if self._parts.machine.capacity.gpus:
            with self._parts.store.read() as reader:
                attempt = reader.attempt(attempt_id)
            if attempt is not None:
                self._note(attempt)

    def _note(self, attempt: Attempt) -> None:
        if attempt.gpus and not attempt.slices and attempt.attempt_id not in self._waiting:
            self._used[attempt.attempt_id] = {
                grant.uuid: self._parts.machine.used_mb(grant.uuid) for grant in attempt.gpus
            }

    def proven(self, ends: Ends, later: Callable[[Ends], None]) -> Ends:
        """The ends whose GPUs are back, or that had none; `later` is called with each other one
        when it is proven."""
        for attempt_id in self._alerted_of_nodes & {attempt_id for attempt_id, _ in ends}:
            self._alerted_of_nodes.discard(attempt_id)
            self._close_alert(attempt_id)
        if not self._parts.machine.capacity.gpus:
            return ends
        ready = []
        for attempt_id, end in ends:
            with self._parts.store.read() as reader:
                attempt = reader.attempt(attempt_id)
            if attempt is None or not attempt.gpus or attempt.slices or "gpus" in end.receipt:
                ready.append((attempt_id, end))
            elif self._is_new(attempt_id):
                threading.Thread(
                    target=self._wait, args=(attempt, end, later), name="gpu-return", daemon=True
                ).start()
        return ready

    def held_on_nodes(self, news: News) -> None:
        """An end waits for memory on nodes of an executor."""
        with self._parts.store.read() as reader:
            attempt = reader.attempt(news.attempt_id)
        if attempt is None or attempt.status is AttemptStatus.ENDED:
            return
        self._say(attempt, [int(gpu["index"]) for gpu in news.gpus])
        if news.waited_s > _ALERT_AFTER_S and news.attempt_id not in self._alerted_of_nodes:
            self._alerted_of_nodes.add(news.attempt_id)
            log = server_log.of(attempt.attempt_id.rpartition(".")[0], attempt.attempt_id)
            log.critical("GPU memory is not back on {}: it stays reserved", list(news.gpus))
            self._alert(attempt, [{**gpu, "holders": []} for gpu in news.gpus])

    def _is_new(self, attempt_id: str) -> bool:
        """Reconciling tells of the same end again while its GPUs are waited for."""
        with self._lock:
            known = attempt_id in self._waiting
            self._waiting.add(attempt_id)
        return not known

    def _wait(self, attempt: Attempt, end: End, later: Callable[[Ends], None]) -> None:
        try:
            self._until_back(attempt, end, later)
        except Exception as error:
            # Reconciling finds the end again.
            log = server_log.of(attempt=attempt.attempt_id)
            log.opt(exception=error).error("its end could not be recorded yet")
        finally:
            with self._lock:
                self._waiting.discard(attempt.attempt_id)

    def _until_back(self, attempt: Attempt, end: End, later: Callable[[Ends], None]) -> None:
        log = server_log.of(attempt.attempt_id.rpartition(".")[0], attempt.attempt_id)
        began = time.monotonic()
        self._note_most(attempt)
        said = told = False
        while not self.stopping:
            waited = time.monotonic() - began
            held = [grant for grant in attempt.gpus if self._held(attempt, grant.uuid, waited)]
            if not held:
                break
            if not said and waited > _SAY_AFTER_S:
                said = True
                self._say(attempt, [grant.index for grant in held])
            if not told and waited > _ALERT_AFTER_S:
                told = True
                uuids = [grant.uuid for grant in held]
                log.critical("GPU memory is not back on {}: it stays reserved", uuids)
                self._alert(attempt, [self._holding(grant) for grant in held])
            time.sleep(_POLL_S)
        else:
            return
        waited = time.monotonic() - began
        seen = [self._told(attempt, grant) for grant in attempt.gpus]
        log.info("GPU memory released: {}", seen)
        seconds = (end.receipt.get("seconds") or 0.0) + waited
        receipt = {**end.receipt, "gpus": seen, "seconds": seconds}
        later([(attempt.attempt_id, replace(end, receipt=receipt))])
        self._before.forget(attempt.attempt_id)
        self._used.pop(attempt.attempt_id, None)
        if told:
            self._close_alert(attempt.attempt_id)

    def _note_most(self, attempt: Attempt) -> None:
        """The process has ended: some of its memory may be back already, and more of it noted."""
        noted = self._used.get(attempt.attempt_id, {})
        self._used[attempt.attempt_id] = {
            grant.uuid: max(noted.get(grant.uuid, 0), self._parts.machine.used_mb(grant.uuid))
            for grant in attempt.gpus
        }

    def _told(self, attempt: Attempt, grant: GpuGrant) -> dict[str, Any]:
        """What it held before the end, as far as anybody looked, and what is used now."""
        return {
            "index": grant.index,
            "memory_before_mb": self._used.get(attempt.attempt_id, {}).get(grant.uuid),
            "memory_after_mb": self._parts.machine.used_mb(grant.uuid),
        }

    def _say(self, attempt: Attempt, indexes: list[int]) -> None:
        self._parts.store.write(
            lambda tx: cancel_reasons.say_gpu_memory(tx, attempt.job_id, indexes), durable=False
        )

    def _holding(self, grant: GpuGrant) -> dict[str, Any]:
        machine = self._parts.machine
        return {
            "index": grant.index,
            "uuid": grant.uuid,
            "used_mb": machine.used_mb(grant.uuid),
            "holders": [
                {"pid": one.pid, "user": one.user, "name": one.name}
                for one in machine.processes(grant.uuid)
            ],
        }

    def _alert(self, attempt: Attempt, gpus: list[dict[str, Any]]) -> None:
        alert = NewAlert(
            key=f"{GPU_MEMORY_HELD}:{attempt.attempt_id}",
            level=AlertLevel.CRITICAL,
            code=GPU_MEMORY_HELD,
            params={"gpus": gpus},
            job_id=attempt.job_id,
            attempt_id=attempt.attempt_id,
            node_id=attempt.node_id,
            evidence={"gpus": gpus},
        )
        now = self._parts.clock()
        self._parts.store.write(lambda tx: alerting.open_in(tx, alert, now, _ACTOR))

    def _close_alert(self, attempt_id: str) -> None:
        """Where the end of a cancel did not close it."""
        key, now = f"{GPU_MEMORY_HELD}:{attempt_id}", self._parts.clock()
        self._parts.store.write(lambda tx: alerting.close_in(tx, key, now, _ACTOR))

    def _held(self, attempt: Attempt, uuid: str, waited_s: float) -> bool:
        processes = self._parts.machine.processes(uuid)
        if any(self._tag_of(process.pid) == attempt.tag for process in processes):
            return True
        # A driver goes on to name a dead process whose memory something it forked still holds.
        if attempt.request.shares_gpu or any(process.alive for process in processes):
            # Memory of others cannot be told from ours: nobody of ours holding it is the proof.
            return False
        used = self._parts.machine.used_mb(uuid)
        before = self._before.of(attempt.attempt_id).get(uuid)
        if before is None:
            return used > _LOW_MB and waited_s < _UNKNOWN_PATIENCE_S
        return used > before + _TOLERANCE_MB
