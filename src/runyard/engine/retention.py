"""Old folders and logs go, in batches; records stay, outputs and checkpoints are never touched."""

from __future__ import annotations

from runyard.domain.states import AttemptStatus
from runyard.engine import story
from runyard.engine.metric_retention import MetricRetention
from runyard.engine.parts import Parts
from runyard.executors.base import Executor, Sight

_BATCH = 500
_IDEMPOTENT_S = 24 * 3600.0
# A folder without a record is kept a day: its record may be in a backup that is being restored.
_STRAY_S = 24 * 3600.0


class Retention:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._metrics = MetricRetention(parts.store, parts.settings.metrics_keep_days)

    def sweep(self) -> int:
        """Remove what is past its time; returns how many attempt folders went."""
        now = self._parts.clock()
        store = self._parts.store
        store.write(lambda tx: tx.forget_idempotent(now - _IDEMPOTENT_S), durable=False)
        store.write(lambda tx: tx.prune_shapes(), durable=False)
        told_before = now - self._parts.settings.keep_days * 86400
        store.write(lambda tx: tx.forget_deliveries(told_before), durable=False)
        self._metrics.sweep(now)
        before = now - self._parts.settings.keep_days * 86400
        removed = 0
        for name, executor in self._parts.executors.items():
            known = executor.known()
            for start in range(0, len(known), _BATCH):
                batch = known[start : start + _BATCH]
                for attempt_id in self._expired(batch, before) + self._strays(executor, batch):
                    executor.remove(attempt_id)
                    removed += 1
            if removed:
                story.of().info("retention removed {} attempt folders ({})", removed, name)
        return removed

    def _expired(self, ids: list[str], before: float) -> list[str]:
        with self._parts.store.read() as reader:
            found = reader.attempts_by_id(ids)
        return [
            attempt.attempt_id
            for attempt in found.values()
            if attempt.status is AttemptStatus.ENDED
            and attempt.ended_at is not None
            and attempt.ended_at < before
        ]

    def _strays(self, executor: Executor, ids: list[str]) -> list[str]:
        """Folders no record knows of, untouched for a day; what still lives there is left alone
        and told."""
        with self._parts.store.read() as reader:
            unknown = set(ids) - set(reader.attempts_by_id(ids))
            unknown -= {one.preparation_id for one in reader.live_preparations()}
        living = (Sight.STARTING, Sight.RUNNING, Sight.STOPPING)
        gone = []
        for attempt_id, seen in executor.inspect(sorted(unknown)).items():
            log = story.of(attempt=attempt_id)
            if seen.sight in living:
                log.warning("it runs, but no record knows of it")
            elif self._parts.clock() - executor.touched_at(attempt_id) > _STRAY_S:
                gone.append(attempt_id)
        return gone
