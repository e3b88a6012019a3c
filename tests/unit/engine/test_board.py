"""What is known now: bounded, per attempt, told to whoever listens."""

from __future__ import annotations

import threading

from runyard.domain.monitoring.series import Sample
from runyard.engine.watch import board as board_module
from runyard.engine.watch.board import Board, Health, Progress


def _loss(value: float, step: int | None = None, at: float = 100.0) -> Sample:
    return Sample("loss", at, value, step)


def _progress(fraction: float) -> Progress:
    return Progress(fraction, 1, 2, None, None, None, "report", None, 1.0, 1.0)


def test_latest_window_and_names() -> None:
    board = Board(history_size=3)
    board.record(7, 1, [_loss(float(step), step) for step in range(5)])
    board.record(7, 1, [Sample("learning_rate", 101.0, 0.1)])
    assert board.latest(7)["loss"] == _loss(4.0, 4)
    assert [sample.value for sample in board.window(7, "loss")] == [2.0, 3.0, 4.0]
    assert board.names(7) == ["learning_rate", "loss"]
    assert board.jobs() == [7]


def test_what_nobody_knows_of_is_empty() -> None:
    board = Board()
    assert board.latest(1) == {}
    assert board.window(1, "loss") == []
    assert board.names(1) == []
    assert board.progress(1) is None
    assert board.health(1).level == "unknown"
    assert board.node_latest("here") == {}
    assert board.node_window("here", "node.cpu_percent") == []


def test_a_new_attempt_begins_with_nothing_known() -> None:
    board = Board()
    board.record(7, 1, [_loss(1.0)])
    board.set_progress(7, _progress(0.5))
    board.record(7, 2, [Sample("learning_rate", 1.0, 0.1)])
    assert board.names(7) == ["learning_rate"]
    assert board.progress(7) is None


def test_late_samples_of_an_old_attempt_reach_listeners_but_not_the_window() -> None:
    board, heard = Board(), []
    board.on_samples(lambda job, attempt, samples: heard.append((job, attempt, len(samples))))
    board.record(7, 2, [_loss(1.0)])
    board.record(7, 1, [_loss(9.0), _loss(8.0)])
    assert heard == [(7, 2, 1), (7, 1, 2)]
    assert [sample.value for sample in board.window(7, "loss")] == [1.0]


def test_a_listener_that_fails_takes_nothing_from_the_others() -> None:
    board, heard = Board(), []

    def fails(*_: object) -> None:
        raise ValueError

    board.on_samples(fails)
    board.on_samples(lambda *told: heard.append(told))
    board.on_node_samples(fails)
    board.on_node_samples(lambda *told: heard.append(told))
    board.record(7, 1, [_loss(1.0)])
    board.record_node("here", [Sample("node.cpu_percent", 1.0, 50.0)])
    assert len(heard) == 2


def test_health_and_progress_until_forgotten() -> None:
    board = Board()
    board.set_health(7, Health("warning", "idle_gpu", {"gpu": 1}, 5.0))
    board.set_progress(7, _progress(0.25))
    assert board.health(7).code == "idle_gpu"
    found = board.progress(7)
    assert found is not None
    assert found.fraction == 0.25
    board.forget(7)
    assert board.health(7).level == "unknown"
    assert board.progress(7) is None
    assert board.jobs() == []


def test_a_program_that_invents_names_for_ever_is_bounded() -> None:
    board = Board(history_size=2)
    many = [Sample(f"metric_{number}", 1.0, 1.0) for number in range(5000)]
    board.record(7, 1, many)
    assert len(board.names(7)) == board_module.MOST_NAMES


def test_machines_have_series_of_their_own() -> None:
    board = Board()
    board.record_node("here", [Sample("node.cpu_percent", at, at) for at in (1.0, 2.0)])
    board.record_node("there", [Sample("node.cpu_percent", 1.0, 9.0)])
    assert board.node_latest("here")["node.cpu_percent"].value == 2.0
    assert [one.at for one in board.node_window("here", "node.cpu_percent", since=2.0)] == [2.0]
    assert board.node_names("there") == ["node.cpu_percent"]


def test_many_threads_at_once() -> None:
    board = Board(history_size=100)
    failures: list[Exception] = []

    def work(job_id: int) -> None:
        try:
            for step in range(500):
                board.record(job_id, 1, [_loss(float(step), step)])
                board.window(1, "loss")
                board.latest(job_id)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(job_id,)) for job_id in (1, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(board.window(1, "loss")) == 100


def test_late_samples_of_a_forgotten_job_do_not_bring_it_back() -> None:
    board, heard = Board(), []
    board.on_samples(lambda *told: heard.append(told))
    board.record(7, 1, [_loss(1.0)])
    board.forget(7, 1)
    board.record(7, 1, [_loss(2.0)])
    board.set_progress(7, _progress(0.5))
    board.set_health(7, Health("ok"))
    assert board.jobs() == []
    assert len(heard) == 2
    board.begin(7, 2)
    board.set_progress(7, _progress(0.1))
    board.record(7, 2, [_loss(3.0)])
    board.forget(7, 1)  # the end of the attempt before, read late
    assert board.latest(7)["loss"].value == 3.0
    assert board.progress(7) is not None


def test_what_is_restored_is_told_to_nobody() -> None:
    board, heard = Board(), []
    board.on_samples(lambda *told: heard.append(told))
    board.restore(7, 1, [_loss(1.0)])
    assert board.names(7) == ["loss"]
    assert heard == []
