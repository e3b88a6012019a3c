"""Old folders and logs go, in batches; records stay, outputs and checkpoints are never touched."""

from __future__ import annotations

import shutil
from pathlib import Path

from runyard.domain import states
from runyard.domain.job import Attempt
from runyard.domain.preparation import Preparation, is_preparation_id
from runyard.domain.states import AttemptStatus
from runyard.engine import server_log
from runyard.engine.history.metric_retention import MetricRetention
from runyard.engine.parts import Parts
from runyard.executors.base import Executor, Sight
from runyard.stores.base import Reader

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
        store.write(lambda tx: tx.forget_login_sessions(now), durable=False)
        told_before = now - self._parts.settings.keep_days * 86400
        store.write(lambda tx: tx.forget_deliveries(told_before), durable=False)
        self._metrics.sweep(now)
        self._drop_links()
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
                server_log.of().info("retention removed {} attempt folders ({})", removed, name)
        return removed

    def _drop_links(self) -> None:
        """Of jobs that ended while no server could take their links away."""
        folder = self._parts.settings.data_dir / "prefetch"
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        with self._parts.store.read() as reader:
            gone = [path for path in found if _is_over(reader, path)]
        for path in gone:
            shutil.rmtree(path, ignore_errors=True)

    def _expired(self, ids: list[str], before: float) -> list[str]:
        with self._parts.store.read() as reader:
            units: dict[str, Attempt | Preparation] = dict(reader.attempts_by_id(ids))
            units |= _preparations(reader, ids)
        return [
            name
            for name, unit in units.items()
            if unit.status is AttemptStatus.ENDED
            and unit.ended_at is not None
            and unit.ended_at < before
        ]

    def _strays(self, executor: Executor, ids: list[str]) -> list[str]:
        """Folders no record knows of, untouched for a day; what still lives there is left alone
        and told."""
        with self._parts.store.read() as reader:
            unknown = set(ids) - set(reader.attempts_by_id(ids)) - set(_preparations(reader, ids))
        living = (Sight.STARTING, Sight.RUNNING, Sight.STOPPING)
        gone = []
        for attempt_id, seen in executor.inspect(sorted(unknown)).items():
            log = server_log.of(attempt=attempt_id)
            if seen.sight in living:
                log.warning("it runs, but no record knows of it")
            elif self._parts.clock() - executor.touched_at(attempt_id) > _STRAY_S:
                gone.append(attempt_id)
        return gone


def _preparations(reader: Reader, ids: list[str]) -> dict[str, Preparation]:
    names = [name for name in ids if is_preparation_id(name)]
    found = {name: reader.preparation(name) for name in names}
    return {name: one for name, one in found.items() if one is not None}


def _is_over(reader: Reader, links: Path) -> bool:
    job = reader.job(links.name)
    return job is None or job.status in states.ENDED
