"""What attempts write becomes progress and metrics, once each, whatever happens meanwhile."""

from __future__ import annotations

import json
import math
import os
import time

import pytest
from watched_store import WatchedStore

from engine_yard import ANN
from event_files import recorded
from runyard.domain import errors
from runyard.engine.history import attempt_reading, log_reading, read_marks
from runyard.engine.history.attempt_reading import AttemptReading, Files
from runyard.probes.tensorboard import TensorBoardFiles
from yards import until


class Training:
    """One running attempt and the files it writes."""

    def __init__(self, yard, **fields) -> None:
        self.yard = yard
        self.ref = yard.running(**fields)
        self.attempt_id = yard.job(self.ref).attempt_id()
        self.folder = yard.settings.data_dir / "attempts" / self.attempt_id
        self.folder.mkdir(parents=True, exist_ok=True)

    def say(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        with open(self.yard.executor.log_path(self.attempt_id), "ab") as log:
            log.write(data)

    def report(self, *lines: dict) -> None:
        with open(self.folder / "metrics.jsonl", "a") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")

    def series(self, name: str = "loss", most: int = 10_000, **more):
        return self.yard.yard.runtime.metric_history.series(self.ref, [name], most, **more)[name]

    def steps(self, name: str = "loss") -> list[int | None]:
        return [sample.step for sample in self.series(name).samples]

    def values(self, name: str = "loss") -> list[float]:
        return [sample.value for sample in self.series(name).samples]

    @property
    def progress(self) -> float:
        return self.yard.job(self.ref).progress


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(log_reading, "UNWATCHED_S", 0.05)
    monkeypatch.setattr(log_reading, "WATCHED_S", 0.05)
    monkeypatch.setattr(log_reading, "_TELL_EVERY_S", 0.0)


@pytest.fixture
def training(engine):
    return Training(engine)


def _line(step: int, total: int = 100, loss: float | None = None) -> str:
    told = {"step": step, "max_steps": total, "loss": step / 10 if loss is None else loss}
    return json.dumps(told) + "\n"


def test_the_log_of_an_unmodified_script(training):
    """R14"""
    for step in range(1, 41):
        training.say(_line(step))
    until(lambda: len(training.steps()) == 40)
    assert training.steps() == list(range(1, 41))
    until(lambda: training.progress == 40.0)
    board = training.yard.parts.board
    found = board.progress(training.yard.job(training.ref).id)
    assert (found.step, found.total_steps, found.source) == (40, 100, "json")


def test_reports_with_nan_infinity_and_their_own_time(training):
    now = time.time()
    training.report(
        {"t": now - 5, "step": 1, "total": 4, "loss": "NaN"},
        {"t": now - 4, "step": 2, "total": 4, "loss": "Infinity"},
        {"t": now - 3, "step": 3, "total": 4, "loss": "-Infinity"},
    )
    until(lambda: len(training.steps()) == 3)
    assert [repr(value) for value in training.values()] == ["nan", "inf", "-inf"]
    assert [sample.at for sample in training.series().samples] == [now - 5, now - 4, now - 3]
    until(lambda: training.progress == 75.0)


def test_a_report_beats_the_log(training):
    training.report({"step": 10, "total": 100, "loss": 1.0})
    until(lambda: training.steps() == [10])
    training.say(_line(99, loss=9.0))
    training.report({"step": 20, "total": 100, "loss": 2.0})
    until(lambda: 20 in training.steps())
    assert training.values() == [1.0, 2.0]
    until(lambda: training.progress == 20.0)


def test_event_files_of_the_output_folder(tmp_path):
    recorded(tmp_path)
    files = Files(str(tmp_path / "out.log"), str(tmp_path / "metrics.jsonl"), str(tmp_path))
    begun = 1_789_999_999.0
    reading = AttemptReading(files, "train", begun, TensorBoardFiles(), None)
    taken = reading.read(begun + 100)
    assert [sample.name for sample in taken.samples] == ["loss"] * 21
    assert reading.read(begun + 101).samples == []
    mark = reading.mark(force=True)
    again = AttemptReading(files, "train", begun, TensorBoardFiles(), mark)
    assert again.read(begun + 200).samples == []


def test_the_end_is_read_to_its_last_byte(training):
    training.say(_line(1))
    training.say(_line(2)[:-1])  # without an end
    training.yard.finish(training.ref)
    training.yard.wait(training.ref, "completed")
    until(lambda: training.steps() == [1, 2])
    assert training.progress == 100.0
    _until_no_marks(training.yard)
    assert training.yard.parts.board.jobs() == []


def test_an_attempt_that_lived_between_two_looks_is_read(engine):
    training = Training(engine)
    training.report({"step": 1, "total": 2, "loss": 1.0}, {"step": 2, "total": 2, "loss": 0.5})
    training.yard.finish(training.ref, 3)
    training.yard.wait(training.ref, "failed")
    until(lambda: training.steps() == [1, 2])
    until(lambda: training.progress == 99.9)  # 100 is for those that completed
    _until_no_marks(engine)


def test_a_restart_loses_and_doubles_nothing(make_engine):
    """R14"""
    yard = make_engine()
    training = Training(yard)
    for start in (1, 21, 41):
        for step in range(start, start + 10):
            training.say(_line(step))
        until(lambda start=start: training.steps()[-1:] == [start + 9])
        yard.close()
        for step in range(start + 10, start + 20):
            training.say(_line(step))
        yard._compose()
        yard.open()
        until(lambda start=start: training.steps()[-1:] == [start + 19])
        assert training.steps() == list(range(1, start + 20))
    job = yard.job(training.ref)
    window = yard.parts.board.window(job.id, "loss")
    assert [sample.step for sample in window] == list(range(1, 61))
    assert training.progress == 60.0


def test_an_end_that_was_recorded_but_not_read_is_read_by_the_next_server(make_engine):
    yard = make_engine()
    training = Training(yard)
    yard.yard.runtime.log_reading.stop()
    training.say(_line(1))
    yard.finish(training.ref)
    yard.wait(training.ref, "completed")
    yard.restart()
    until(lambda: training.steps() == [1])
    _until_no_marks(yard)


def test_a_store_that_fails_for_a_while_loses_nothing(make_engine):
    yard = make_engine(wrap=WatchedStore)
    training = Training(yard)

    def away(tx):
        if not tx.flags("never"):
            raise errors.Unavailable("away")

    yard.store.before = away
    for step in range(1, 31):
        training.say(_line(step))
    time.sleep(0.5)
    yard.store.before = lambda _tx: None
    until(lambda: training.steps() == list(range(1, 31)))


def test_malformed_and_absurd_lines_are_skipped(training):
    """Bad input"""
    with open(training.folder / "metrics.jsonl", "ab") as file:
        file.write(b'not json\n{}\n[1,2]\nnull\n{"step": -5, "loss": 1}\n')
        file.write(b'{"step": 1e400, "loss": 2}\n{"loss": {"a": {}}}\n\x00\xff\xfe\n')
        file.write(b'{"step": 99999999999999999999999999, "loss": 3}\n')
        file.write(b"[" * 50_000 + b"\n" + b"x" * 200_000 + b"\n")
        file.write(b'{"step": 7, "loss": 4.5, "t": -1e300}\n{"step": 8, "loss"')
    until(lambda: 7 in training.steps())
    found = training.series().samples
    assert all(sample.step is None or 0 <= sample.step < 2**62 for sample in found)
    assert all(abs(sample.at - time.time()) < 3600 for sample in found)


def test_a_binary_log_and_a_line_without_end(training):
    """Bad input: what is around it is still read, also when the line grows while it is read."""
    training.say(_line(1))
    training.say(os.urandom(500_000) + b"\n")
    for _ in range(100):
        training.say(b"x" * 1_000_000)
    training.say("\n" + _line(2))
    until(lambda: training.steps() == [1, 2])


def test_a_line_of_a_hundred_megabytes_that_is_there_at_once(training):
    """Bad input: it is passed over, not read."""
    training.say(_line(1))
    until(lambda: training.steps() == [1])
    training.say(b"x" * 100_000_000)
    training.say("\n" + _line(2))
    until(lambda: training.steps() == [1, 2])


def test_progress_never_goes_back_within_an_attempt(training):
    training.report({"step": 50, "total": 100})
    until(lambda: training.progress == 50.0)
    training.report({"step": 10, "total": 100}, {"step": 11, "total": 100, "mark": 1})
    until(lambda: training.values("mark") == [1.0])
    assert training.progress == 50.0
    training.report({"step": 70, "total": 100})
    until(lambda: training.progress == 70.0)


def test_a_new_attempt_begins_anew(make_engine):
    yard = make_engine(retry_delays=(0.0,))
    training = Training(yard, max_retries=1)
    training.report({"step": 50, "total": 100, "loss": 1.0})
    until(lambda: training.progress == 50.0)
    yard.finish(training.ref, 1)
    until(lambda: yard.job(training.ref).attempt_number == 2)
    yard.wait(training.ref, "running")
    training.attempt_id = yard.job(training.ref).attempt_id()
    training.folder = yard.settings.data_dir / "attempts" / training.attempt_id
    training.folder.mkdir(parents=True, exist_ok=True)
    training.report({"step": 30, "total": 100, "loss": 2.0})
    until(lambda: training.progress == 30.0)
    until(lambda: training.values() == [2.0])  # the run as it stands
    until(lambda: yard.parts.board.latest(yard.job(training.ref).id)["loss"].value == 2.0)


def test_a_checkpoint_that_is_told_reaches_whoever_listens(training):
    heard = []
    training.yard.yard.runtime.log_reading.on_checkpoint(lambda *told: heard.append(told))
    training.report({"kind": "checkpoint", "path": "/data/step-5.pt", "step": 5})
    until(lambda: heard)
    job_id, attempt, checkpoint = heard[0]
    assert (job_id, attempt) == (training.yard.job(training.ref).id, 1)
    assert (checkpoint.path, checkpoint.step) == ("/data/step-5.pt", 5)


def test_a_bar_that_is_drawn_seldom_is_seen_before_it_is_drawn_again(training):
    training.say("\r 10%|#         | 10/100 [00:10<01:30,  1.00it/s]")
    training.say("\r 20%|##        | 20/100 [00:20<01:20,  1.00it/s]")
    until(lambda: training.progress == 20.0)


def test_a_deleted_job_is_forgotten(engine):
    training = Training(engine)
    training.say(_line(1))
    until(lambda: training.steps() == [1])
    engine.finish(training.ref)
    engine.wait(training.ref, "completed")
    _until_no_marks(engine)
    engine.yard.delete(training.ref, ANN)
    time.sleep(0.2)  # nothing is written of it any more
    until(lambda: engine.parts.board.jobs() == [])


def test_log_lines_are_spread_over_the_time_they_came_in(tmp_path):
    """They have no time of their own, and a server may have been away."""
    log = tmp_path / "out.log"
    log.write_text("".join(_line(step) for step in range(1, 101)))
    os.utime(log, (2000.0, 2000.0))
    files = Files(str(log), str(tmp_path / "metrics.jsonl"), str(tmp_path))
    reading = AttemptReading(files, "train", 1000.0, None, None)
    samples = [s for s in reading.read(5000.0).samples if s.name == "loss"]
    times = [sample.at for sample in samples]
    assert times == sorted(set(times))
    assert 1000 < times[0] < 1100
    assert 1900 < times[-1] <= 2000


def test_a_log_that_is_far_behind_is_skipped_in_part_and_told(tmp_path, monkeypatch):
    monkeypatch.setattr(attempt_reading, "_FAR_BEHIND", 1_000_000)
    log = tmp_path / "out.log"
    with open(log, "w") as file:
        for step in range(1, 60_001):
            file.write(_line(step, 60_000))
    files = Files(str(log), str(tmp_path / "metrics.jsonl"), str(tmp_path))
    reading = AttemptReading(files, "train", 1000.0, None, None)
    last, more = None, True
    while more:
        taken = reading.read(time.time())
        more = taken.more
        last = taken.samples[-1] if taken.samples else last
    assert last is not None
    assert last.step == 60_000
    assert reading.skipped_bytes > 0


def test_a_mark_that_makes_no_sense_is_read_from_the_beginning(tmp_path):
    (tmp_path / "out.log").write_text(_line(1))
    files = Files(str(tmp_path / "out.log"), str(tmp_path / "metrics.jsonl"), str(tmp_path))
    for mark in ("", "{", "[]", '{"log": "x", "metrics": -4, "events": 3}'):
        reading = AttemptReading(files, "train", 1000.0, None, mark)
        assert [s.step for s in reading.read(2000.0).samples if s.name == "loss"] == [1], mark
        assert not math.isnan(reading.account.at)


def _until_no_marks(yard) -> None:
    def none() -> bool:
        with yard.store.read() as reader:
            return not read_marks.all_of(reader)

    until(none)
