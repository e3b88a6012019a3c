"""What a store promises about metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runyard.domain.monitoring.series import Sample
from runyard.stores.base import Store
from runyard.stores.base_metrics import MetricRange, Series
from runyard.testing.store_samples import START, submit_one


def _losses(first: int, end: int, name: str = "loss", at: float = START) -> list[Sample]:
    return [Sample(name, at + step, math.sin(step / 100), step) for step in range(first, end)]


def _insert(store: Store, job_id: int, samples: Sequence[Sample], attempt: int = 1) -> int:
    return store.write(lambda tx: tx.insert_points(job_id, attempt, samples), durable=False)


def _series(
    store: Store, job_id: int, name: str = "loss", most: int = 1000, **chosen: float | int
) -> Series:
    with store.read() as reader:
        return reader.metric_series(job_id, name, most, MetricRange(**chosen))  # type: ignore[arg-type]


class MetricContract:
    def test_samples_come_back_exactly(self, store: Store) -> None:
        job = submit_one(store)
        samples = [
            Sample("loss", START, 1.25, 0),
            Sample("loss", START + 0.1, -1e300, 1),
            Sample("loss", START + 0.2, 2**53 + 1.0, 2**62),
        ]
        assert _insert(store, job.id, samples) == 3
        found = _series(store, job.id)
        assert found == Series(tuple(samples), False)

    def test_nan_and_infinities_survive(self, store: Store) -> None:
        job = submit_one(store)
        values = [1.0, math.nan, math.inf, -math.inf, 2.0]
        _insert(store, job.id, [Sample("loss", START + n, v, n) for n, v in enumerate(values)])
        found = [sample.value for sample in _series(store, job.id).samples]
        assert [repr(value) for value in found] == [repr(value) for value in values]

    def test_samples_without_a_step_are_ordered_by_time(self, store: Store) -> None:
        job = submit_one(store)
        samples = [Sample("system.rss_mb", START + n, float(n)) for n in range(5)]
        _insert(store, job.id, samples[2:])
        _insert(store, job.id, samples[:2])
        assert _series(store, job.id, "system.rss_mb").samples == tuple(samples)

    def test_the_same_samples_again_change_nothing(self, store: Store) -> None:
        job = submit_one(store)
        samples = _losses(0, 250)
        assert _insert(store, job.id, samples) == 250
        assert _insert(store, job.id, samples) == 0
        assert _insert(store, job.id, _losses(200, 300)) == 50
        assert _insert(store, job.id, [*samples[:5], *samples[:5]]) == 0
        found = _series(store, job.id)
        assert [sample.step for sample in found.samples] == list(range(300))
        assert not found.sampled

    def test_names_of_a_job(self, store: Store) -> None:
        job, other = submit_one(store), submit_one(store)
        names = [f"metric.{number:03}" for number in range(300)]
        _insert(store, job.id, [Sample(name, START, 1.0, 1) for name in names])
        _insert(store, other.id, [Sample("größe/✓", START, 1.0)])
        with store.read() as reader:
            assert reader.metric_names(job.id) == names
            assert reader.metric_names(other.id) == ["größe/✓"]
            assert reader.metric_names(other.id + 1) == []
        assert _series(store, other.id, "metric.000") == Series((), False)
        assert _series(store, other.id, "nobody.knows") == Series((), False)

    def test_many_points_are_answered_with_few_that_keep_what_stands_out(
        self, store: Store
    ) -> None:
        job = submit_one(store)
        samples = _losses(0, 60_000)
        samples[31_234] = Sample("loss", START + 31_234, 900.0, 31_234)
        samples[41_111] = Sample("loss", START + 41_111, math.nan, 41_111)
        samples[51_111] = Sample("loss", START + 51_111, -math.inf, 51_111)
        for start in range(0, 60_000, 7_001):
            _insert(store, job.id, samples[start : start + 7_001])
        for most in (10, 100, 1000):
            found = _series(store, job.id, most=most)
            assert found.sampled
            assert most // 4 <= len(found.samples) <= most
            assert found.samples[0] == samples[0]
            assert found.samples[-1] == samples[-1]
            steps = [sample.step for sample in found.samples]
            assert steps == sorted(set(steps))  # type: ignore[type-var]
            if most > 10:
                assert samples[31_234] in found.samples
                assert samples[51_111] in found.samples
                assert any(
                    sample.step == 41_111 and math.isnan(sample.value) for sample in found.samples
                )
            for sample in found.samples:  # none is invented or averaged
                assert repr(sample) == repr(samples[sample.step or 0])

    def test_a_part_of_a_series(self, store: Store) -> None:
        job = submit_one(store)
        samples = _losses(0, 5_000)
        _insert(store, job.id, samples)

        def steps(most: int = 10_000, **chosen: float | int) -> list[int | None]:
            return [one.step for one in _series(store, job.id, "loss", most, **chosen).samples]

        assert steps(since=START + 4_990) == list(range(4_990, 5_000))
        assert steps(until=START + 9) == list(range(10))
        assert steps(since=START + 100, until=START + 104) == list(range(100, 105))
        assert steps(since_step=4_998) == [4_998, 4_999]
        assert steps(since=START + 9_000) == []
        some = steps(most=20, since=START + 1_000, until=START + 3_000)
        assert some[0] is not None
        assert some[0] >= 1_000
        assert len(some) <= 20
        assert max(step or 0 for step in some) <= 3_000

    def test_the_run_as_it_stands_over_several_attempts(self, store: Store) -> None:
        """What a resumed attempt did again replaces what was lost."""
        job = submit_one(store)
        _insert(store, job.id, _losses(0, 300), attempt=1)
        _insert(store, job.id, _losses(200, 400, at=START + 1_000), attempt=2)
        found = _series(store, job.id)
        assert [sample.step for sample in found.samples] == list(range(400))
        assert found.samples[199].at == START + 199
        assert found.samples[200].at == START + 1_200
        first = _series(store, job.id, attempt=1)
        assert [sample.step for sample in first.samples] == list(range(300))
        assert _series(store, job.id, attempt=3).samples == ()

    def test_the_newest_of_an_attempt(self, store: Store) -> None:
        job = submit_one(store)
        _insert(store, job.id, _losses(0, 50))
        with store.read() as reader:
            tail = reader.metric_tail(job.id, 1, "loss", 3)
            assert [sample.step for sample in tail] == [47, 48, 49]
            assert reader.metric_tail(job.id, 2, "loss", 3) == []
            assert reader.metric_tail(job.id, 1, "other", 3) == []

    def test_old_points_go_and_their_rollups_stay(self, store: Store) -> None:
        job = submit_one(store, submitted_at=START)
        samples = _losses(0, 3_000)
        samples[777] = Sample("loss", START + 777, 99.0, 777)
        _insert(store, job.id, samples)
        cut = START + 2_000
        with store.read() as reader:
            assert reader.jobs_with_points_before(cut) == [job.id]
        assert store.write(lambda tx: tx.prune_points(job.id, cut)) == 2_000
        with store.read() as reader:
            assert reader.jobs_with_points_before(cut) == []
        found = _series(store, job.id, most=5_000)
        steps = [sample.step for sample in found.samples]
        assert found.sampled
        assert steps[-1_000:] == list(range(2_000, 3_000))
        assert 10 < len(steps) - 1_000 < 100  # some of each hundred
        assert samples[777] in found.samples
        assert samples[777] in _series(store, job.id, most=30).samples
        old = _series(store, job.id, most=5_000, until=START + 900)
        assert samples[777] in old.samples
        assert store.write(lambda tx: tx.prune_points(job.id, START + 9_999)) == 1_000
        assert samples[777] in _series(store, job.id, most=5_000).samples

    def test_they_go_with_their_job(self, store: Store) -> None:
        job = submit_one(store)
        _insert(store, job.id, _losses(0, 300))
        store.write(lambda tx: tx.delete_job(job.id))
        assert _series(store, job.id) == Series((), False)
        with store.read() as reader:
            assert reader.metric_names(job.id) == []

    def test_samples_of_a_job_that_is_gone_are_dropped(self, store: Store) -> None:
        job = submit_one(store)
        store.write(lambda tx: tx.delete_job(job.id))
        assert _insert(store, job.id, _losses(0, 3)) == 0

    def test_series_of_machines(self, store: Store) -> None:
        samples = [Sample("node.cpu_percent", START + n, float(n % 7)) for n in range(1_000)]
        samples[500] = Sample("node.cpu_percent", START + 500, 99.0)

        def write(node_id: str, some: Sequence[Sample]) -> None:
            store.write(lambda tx: tx.insert_node_points(node_id, some), durable=False)

        write("node-1", samples)
        write("node-1", samples[:10])
        write("node-2", [Sample("gpu.0.util", START, math.nan)])
        with store.read() as reader:
            assert reader.node_metric_names("node-1") == ["node.cpu_percent"]
            whole = reader.node_series("node-1", "node.cpu_percent", 5_000)
            assert whole == Series(tuple(samples), False)
            few = reader.node_series("node-1", "node.cpu_percent", 20)
            assert samples[500] in few.samples
            assert len(few.samples) <= 20
            part = MetricRange(since=START + 10, until=START + 12)
            found = reader.node_series("node-1", "node.cpu_percent", 20, part)
            assert found.samples == tuple(samples[10:13])
            [other] = reader.node_series("node-2", "gpu.0.util", 5).samples
            assert math.isnan(other.value)
            assert reader.node_series("node-2", "node.cpu_percent", 5).samples == ()

    def test_series_of_machines_are_thinned_and_pruned(self, store: Store) -> None:
        samples = [Sample("node.cpu_percent", START + n, float(n % 7)) for n in range(1_000)]
        samples[500] = Sample("node.cpu_percent", START + 500, 99.0)
        store.write(lambda tx: tx.insert_node_points("node-1", samples))
        gone = store.write(lambda tx: tx.thin_node_points(START, START + 800, 100.0))
        assert 700 < gone < 800
        with store.read() as reader:
            left = reader.node_series("node-1", "node.cpu_percent", 5_000).samples
        assert len(left) == 1_000 - gone
        assert samples[500] in left
        assert left[-200:] == tuple(samples[800:])
        assert store.write(lambda tx: tx.prune_node_points(START + 900)) == 900 - gone
        with store.read() as reader:
            left = reader.node_series("node-1", "node.cpu_percent", 5_000).samples
        assert left == tuple(samples[900:])
