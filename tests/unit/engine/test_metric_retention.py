"""Old single points go, what sums them up stays; machines' series are thinned after a day."""

from __future__ import annotations

from runyard.domain.monitoring.series import Sample
from runyard.engine.history.metric_retention import MetricRetention
from runyard.stores.base_metrics import MetricRange

DAY = 86400.0


def _insert(yard, job_id, samples):
    yard.store.write(lambda tx: tx.insert_points(job_id, 1, samples))


def test_points_of_jobs_go_by_age(engine):
    """R14"""
    now = engine.clock()
    old = engine.job(engine.submit(hold=True)).id
    samples = [Sample("loss", now - 40 * DAY + n, float(n % 9), n) for n in range(1000)]
    samples[333] = Sample("loss", samples[333].at, 77.0, 333)
    _insert(engine, old, samples)
    _insert(engine, old, [Sample("loss", now - 5, 1.0, 2000)])
    retention = MetricRetention(engine.store, keep_days=30)
    # The job must be older than what is pruned, as it is when so much time has passed.
    retention.sweep(now + 1)
    with engine.store.read() as reader:
        assert len(reader.metric_series(old, "loss", 5000).samples) == 1001
    retention.sweep(now + 31 * DAY)
    with engine.store.read() as reader:
        assert reader.jobs_with_points_before(now + DAY) == []
        left = reader.metric_series(old, "loss", 5000)
    assert left.sampled
    assert samples[333] in left.samples
    assert len(left.samples) < 100


def test_series_of_machines_are_thinned_after_a_day_and_go_by_age(engine):
    now = engine.clock()
    retention = MetricRetention(engine.store, keep_days=30)
    samples = [Sample("node.cpu_percent", now - 3 * DAY + 10 * n, float(n)) for n in range(1000)]
    newest = [Sample("node.cpu_percent", now - 10 * n, 1.0) for n in range(100)]
    ancient = [Sample("node.cpu_percent", now - 31 * DAY, 1.0)]
    engine.store.write(lambda tx: tx.insert_node_points("node-9", [*ancient, *samples, *newest]))
    retention.sweep(now)
    with engine.store.read() as reader:
        left = reader.node_series("node-9", "node.cpu_percent", 5000).samples
        recent = reader.node_series(
            "node-9", "node.cpu_percent", 5000, MetricRange(since=now - 2000)
        ).samples
    assert ancient[0] not in left
    assert len(recent) == 100
    assert 30 < len(left) - 100 < 120
    assert samples[-1] in left
    retention.sweep(now)  # again: nothing to do
    with engine.store.read() as reader:
        assert reader.node_series("node-9", "node.cpu_percent", 5000).samples == left
