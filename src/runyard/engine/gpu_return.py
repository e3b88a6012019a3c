"""A GPU goes to the next job only when the memory of the last one is proven back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from runyard.domain.job import Attempt
from runyard.engine import story
from runyard.engine.parts import Parts
from runyard.executors.base import End

_POLL_S = 0.1
_ALERT_AFTER_S = 5.0
# A driver keeps a little for itself, and it varies.
_TOLERANCE_MB = 256

Ends = list[tuple[str, End]]


class GpuReturn:
    def __init__(self, parts: Parts, tag_of: Callable[[int], int | None]) -> None:
        self._parts = parts
        self._tag_of = tag_of
        self._before: dict[str, dict[str, int]] = {}  # attempt -> gpu uuid -> MB used before
        self._waiting: set[str] = set()
        self._lock = threading.Lock()
        self.stopping = False

    def remember(self, attempt: Attempt) -> None:
        """Note what the GPUs hold before an attempt starts."""
        if attempt.gpus:
            self._before[attempt.attempt_id] = {
                grant.uuid: self._parts.machine.used_mb(grant.uuid) for grant in attempt.gpus
            }

    def proven(self, ends: Ends, later: Callable[[Ends], None]) -> Ends:
        """The ends whose GPUs are back, or that had none; `later` is called with each other one
        when it is proven."""
        if not self._parts.machine.capacity.gpus:
            return ends
        ready = []
        for attempt_id, end in ends:
            with self._parts.store.read() as reader:
                attempt = reader.attempt(attempt_id)
            if attempt is None or not attempt.gpus or "gpus" in end.receipt:
                ready.append((attempt_id, end))
            elif self._is_new(attempt_id):
                threading.Thread(
                    target=self._wait, args=(attempt, end, later), name="gpu-return", daemon=True
                ).start()
        return ready

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
            log = story.of(attempt=attempt.attempt_id)
            log.opt(exception=error).error("its end could not be recorded yet")
        finally:
            with self._lock:
                self._waiting.discard(attempt.attempt_id)

    def _until_back(self, attempt: Attempt, end: End, later: Callable[[Ends], None]) -> None:
        log = story.of(attempt.attempt_id.rpartition(".")[0], attempt.attempt_id)
        began = time.monotonic()
        told = False
        while not self.stopping:
            held = [grant.uuid for grant in attempt.gpus if self._held(attempt, grant.uuid)]
            if not held:
                break
            if not told and time.monotonic() - began > _ALERT_AFTER_S:
                told = True
                log.critical("GPU memory is not back on {}: it stays reserved", held)
            time.sleep(_POLL_S)
        else:
            return
        before = self._before.get(attempt.attempt_id, {})
        seen = [
            {
                "index": grant.index,
                "memory_before_mb": before.get(grant.uuid),
                "memory_after_mb": self._parts.machine.used_mb(grant.uuid),
            }
            for grant in attempt.gpus
        ]
        log.info("GPU memory released: {}", seen)
        later([(attempt.attempt_id, replace(end, receipt={**end.receipt, "gpus": seen}))])
        self._before.pop(attempt.attempt_id, None)

    def _held(self, attempt: Attempt, uuid: str) -> bool:
        processes = self._parts.machine.processes(uuid)
        if any(self._tag_of(process.pid) == attempt.tag for process in processes):
            return True
        before = self._before.get(attempt.attempt_id, {}).get(uuid)
        if before is None or attempt.request.shares_gpu or processes:
            # Memory of others cannot be told from ours: nobody of ours holding it is the proof.
            return False
        return self._parts.machine.used_mb(uuid) > before + _TOLERANCE_MB
