"""Counting what was done, and timing it."""

from __future__ import annotations

import threading

import pytest

from runyard.engine.tallies import MOST_LABELS, Count, Spread
from runyard.stores.opening import open_store
from runyard.stores.timed import timed


def test_counts_by_label():
    count = Count()
    count.add("a")
    count.add("b", by=2.5)
    count.add("a")
    assert count.all() == {("a",): 2.0, ("b",): 2.5}


def test_labels_have_a_limit():
    count, spread = Count(), Spread([1.0])
    for number in range(MOST_LABELS + 50):
        count.add(str(number))
        spread.add(0.5, str(number))
    count.add("0")
    assert len(count.all()) == len(spread.all()) == MOST_LABELS
    assert count.all()[("0",)] == 2.0


def test_times_fall_into_buckets():
    """A bound belongs to its bucket, and each bucket counts what is below it too."""
    spread = Spread([0.1, 1.0])
    for seconds in (0.05, 0.1, 0.5, 7.0):
        spread.add(seconds)
    [found] = spread.all().values()
    assert found.counts == ((0.1, 2), (1.0, 3), (float("inf"), 4))
    assert found.total == pytest.approx(7.65)


def test_nothing_is_lost_between_threads():
    count, spread = Count(), Spread([1.0])

    def work():
        for _ in range(2000):
            count.add("x")
            spread.add(0.5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.all() == {("x",): 8000.0}
    assert spread.all()[()].counts[-1] == (float("inf"), 8000)


def test_what_fails_is_timed_too():
    spread = Spread([1.0])
    with pytest.raises(ValueError, match="no"), spread.timed():
        raise ValueError("no")
    assert spread.all()[()].counts[-1][1] == 1


def test_writes_of_a_store_are_timed(tmp_path):
    took = []
    real = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    store = timed(real, took.append)
    try:
        store.write(lambda tx: tx.set_flag("a", "1"))
        store.write_soon(lambda tx: tx.set_flag("b", "2")).result(10)
        with pytest.raises(ZeroDivisionError):
            store.write(lambda _: 1 / 0)
        with store.read() as reader:
            assert reader.flags("") == {"a": "1", "b": "2"}
        assert store.shared is False
        assert store.now() > 0
        assert len(took) == 3
        assert all(0 < seconds < 60 for seconds in took)
    finally:
        store.close()
