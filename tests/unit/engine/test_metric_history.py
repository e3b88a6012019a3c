"""Batches of metrics: written together, kept while the store cannot be, never in the way."""

from __future__ import annotations

import math
import threading
import time

import pytest
from watched_store import WatchedStore

from runyard.domain import errors
from runyard.domain.monitoring.series import Sample
from runyard.engine.history import metric_history, read_marks
from runyard.stores.base_metrics import MetricRange
from yards import until


def _loss(step: int, value: float = 1.0) -> Sample:
    return Sample("loss", 1000.0 + step, value, step)


@pytest.fixture
def yard(make_engine):
    return make_engine(wrap=WatchedStore)


@pytest.fixture
def history(yard):
    return yard.yard.runtime.metric_history


@pytest.fixture
def job_id(yard):
    return yard.job(yard.submit(hold=True)).id


def _steps(history, job_id, name="loss", **chosen):
    found = history.series(job_id, [name], 10_000, MetricRange(**chosen))[name]
    return [sample.step for sample in found.samples]


def test_what_is_recorded_on_the_board_is_in_the_history(yard, history, job_id):
    yard.parts.board.record(job_id, 1, [_loss(step) for step in range(10)])
    assert _steps(history, job_id) == list(range(10))


def test_it_is_written_soon_without_being_asked(yard, history, job_id):
    yard.parts.board.record(job_id, 1, [_loss(1)])

    def written():
        with yard.store.read() as reader:
            return reader.metric_names(job_id) == ["loss"]

    until(written)
    yard.parts.board.record_node("node-1", [Sample("node.cpu_percent", 5.0, math.inf)])
    found = history.node_series("node-1", None, 10)
    assert [sample.value for sample in found["node.cpu_percent"].samples] == [math.inf]


def test_samples_and_how_far_was_read_are_written_together_or_not_at_all(yard, history, job_id):
    """R14"""
    inside = []

    def look(tx):
        inside.append((bool(tx.metric_names(job_id)), read_marks.all_of(tx)))

    yard.store.after = look
    with history.together():
        yard.parts.board.record(job_id, 1, [_loss(1)])
        time.sleep(2 * metric_history.BATCH_S)  # a batch is due in the middle
        history.mark("job-x.1", "to here")
    assert history.flush()
    assert all((has_points, bool(marks)) in ((False, False), (True, True))
               for has_points, marks in inside)  # fmt: skip
    with yard.store.read() as reader:
        assert read_marks.all_of(reader) == {"job-x.1": "to here"}
    history.mark("job-x.1", None)
    assert history.flush()
    with yard.store.read() as reader:
        assert read_marks.all_of(reader) == {}


def test_while_the_store_cannot_be_written_they_wait(yard, history, job_id):
    def full(_tx):
        raise errors.DiskFull(path="somewhere")

    yard.store.before = full
    yard.parts.board.record(job_id, 1, [_loss(step) for step in range(5)])
    assert not history.flush()
    yard.parts.board.record(job_id, 1, [_loss(step) for step in range(5, 10)])
    assert not history.flush()
    yard.store.before = lambda _tx: None
    assert history.flush()
    assert _steps(history, job_id) == list(range(10))


def test_a_store_that_stays_unwritable_costs_a_bounded_memory(yard, history, job_id, monkeypatch):
    monkeypatch.setattr(metric_history, "_MOST_WAITING", 1000)

    def away(_tx):
        raise errors.Unavailable("away")

    yard.store.before = away
    assert history.has_room()
    for start in range(0, 2000, 100):
        yard.parts.board.record(job_id, 1, [_loss(step) for step in range(start, start + 100)])
    assert not history.has_room()
    assert history.dropped == 1000
    yard.store.before = lambda _tx: None
    assert history.flush()
    assert history.has_room()
    assert _steps(history, job_id) == list(range(1000))


def test_one_batch_that_is_refused_takes_no_other_with_it(yard, history, job_id):
    other = yard.job(yard.submit(hold=True)).id
    yard.parts.board.record(job_id, 1, [_loss(1)])
    yard.parts.board.record(other, 1, [Sample("not \ud800 text", 1.0, 1.0, 1)])
    yard.parts.board.record(job_id, 1, [_loss(2)])
    assert history.flush()
    assert _steps(history, job_id) == [1, 2]
    assert history.dropped == 1


def test_samples_of_a_deleted_job_are_dropped_quietly(yard, history, job_id):
    yard.store.write(lambda tx: tx.delete_job(job_id))
    yard.parts.board.record(job_id, 1, [_loss(1)])
    assert history.flush()
    assert history.dropped == 0


def test_recording_does_not_wait_for_the_store(yard, history, job_id):
    gate, begun = threading.Event(), threading.Event()

    def slow(_tx):
        begun.set()
        gate.wait(30)

    yard.store.before = slow
    yard.parts.board.record(job_id, 1, [_loss(0)])
    assert begun.wait(30)
    for step in range(1, 2000):
        yard.parts.board.record(job_id, 1, [_loss(step)])
    assert not gate.is_set()  # all of it while the store stood still
    gate.set()
    yard.store.before = lambda _tx: None
    until(lambda: history.flush() and len(_steps(history, job_id)) == 2000)


def test_a_job_that_does_not_exist(history):
    with pytest.raises(errors.JobNotFound):
        history.series("job-none", None, 10)


def test_what_waits_is_written_at_the_end(yard, job_id):
    yard.parts.board.record(job_id, 1, [_loss(1)])
    ref = yard.refs()[0]
    yard.restart()
    assert _steps(yard.yard.runtime.metric_history, ref) == [1]
