"""Old single points of metrics go, a little at a time; what sums them up stays with the job."""

from __future__ import annotations

from functools import partial

from runyard.engine import server_log
from runyard.stores.base import Store, Transaction

_DAY_S = 86400.0
_JOBS_AT_ONCE = 20
_MOST_ROUNDS = 200
_NODE_POINTS_AT_ONCE = 5000
# A machine's series are kept whole for a day; before that, what stood out of every ten minutes.
_WHOLE_S = _DAY_S
_STRETCH_S = 600.0
_SLICE_S = 3600.0
_THINNED_FLAG = "node_points_thinned_to"


class MetricRetention:
    """Each write is short, so that whoever submits meanwhile hardly waits."""

    def __init__(self, store: Store, keep_days: float) -> None:
        self._store = store
        self._keep_s = keep_days * _DAY_S

    def sweep(self, now: float) -> None:
        before = now - self._keep_s
        gone = self._prune_jobs(before) + self._prune_nodes(before)
        self._thin_nodes(before, now - _WHOLE_S)
        if gone:
            server_log.of().info("retention removed {} single points of metrics", gone)

    def _prune_jobs(self, before: float) -> int:
        gone = 0
        for _ in range(_MOST_ROUNDS):
            with self._store.read() as reader:
                jobs = reader.jobs_with_points_before(before, _JOBS_AT_ONCE)
            if not jobs:
                break
            for job_id in jobs:
                gone += self._store.write(partial(_prune, job_id, before), durable=False)
        return gone

    def _prune_nodes(self, before: float) -> int:
        gone = 0
        for _ in range(_MOST_ROUNDS):
            went = self._store.write(
                lambda tx: tx.prune_node_points(before, _NODE_POINTS_AT_ONCE), durable=False
            )
            gone += went
            if went < _NODE_POINTS_AT_ONCE:
                break
        return gone

    def _thin_nodes(self, oldest: float, until: float) -> None:
        with self._store.read() as reader:
            thinned = float(reader.flag(_THINNED_FLAG) or 0)
        start = max(thinned, oldest)
        # Whole hours, so that a stretch is thinned once only.
        start -= start % _SLICE_S
        while start + _SLICE_S <= until:
            end = start + _SLICE_S
            self._store.write(partial(_thin, start, end), durable=False)
            start = end


def _thin(start: float, end: float, tx: Transaction) -> None:
    tx.thin_node_points(start, end, _STRETCH_S)
    tx.set_flag(_THINNED_FLAG, str(end))


def _prune(job_id: int, before: float, tx: Transaction) -> int:
    return tx.prune_points(job_id, before)
