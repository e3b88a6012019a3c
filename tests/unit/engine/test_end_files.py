"""An attempt that wrote nothing is not read; whatever may have been written is."""

from __future__ import annotations

import pytest
from watched_store import WatchedStore

from runyard.engine.end import end_files
from runyard.engine.history import read_marks


@pytest.fixture
def yard(make_engine):
    return make_engine(wrap=WatchedStore)


@pytest.fixture
def folder(yard):
    """The folder of a job as an attempt finds it."""

    def made(ref):
        own = yard.settings.data_dir / "outputs" / ref
        (own / "checkpoints").mkdir(parents=True, exist_ok=True)
        return own

    return made


def test_a_short_command_leaves_nothing(yard, folder):
    folder("j-1")
    assert end_files.are_empty(yard.parts, "j-1.1")
    assert end_files.are_empty(yard.parts, "never-made.1")


@pytest.mark.parametrize("written", ["events.out", "checkpoints/model.pt", "runs/a/b"])
def test_a_file_in_the_folder_of_the_job_counts(yard, folder, written):
    path = folder("j-1") / written
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    assert not end_files.are_empty(yard.parts, "j-1.1")


def test_a_line_or_a_metric_counts(yard):
    yard.executor.folder.joinpath("j-1.1").mkdir(parents=True)
    log = yard.executor.folder / "j-1.1" / "out.log"
    log.write_text("")
    assert end_files.are_empty(yard.parts, "j-1.1")
    log.write_text("hello\n")
    assert not end_files.are_empty(yard.parts, "j-1.1")
    metrics = yard.settings.data_dir / "attempts" / "j-2.1" / "metrics.jsonl"
    metrics.parent.mkdir(parents=True)
    metrics.write_text("{}\n")
    assert not end_files.are_empty(yard.parts, "j-2.1")


@pytest.mark.parametrize("fields", [{"output_path": "elsewhere"}, {"checkpoint": {"dir": "ck"}}])
def test_other_places_of_a_job_are_not_taken_for_empty(yard, fields):
    ref = yard.running(**fields)
    attempt = yard.attempts(ref)[0]
    assert not end_files.tell_all(attempt, yard.job(ref).spec)


def test_only_what_may_have_written_is_marked_to_be_read(yard, monkeypatch):
    """R14"""
    marked = []
    monkeypatch.setattr(read_marks, "note_end", lambda _tx, attempt_id: marked.append(attempt_id))
    silent, speaking = yard.running(), yard.running()
    log = yard.executor.log_path(yard.job(speaking).attempt_id())
    with open(log, "a") as file:
        file.write("loss 1\n")
    for ref in (silent, speaking):
        yard.finish(ref)
        yard.wait(ref, "completed")
    assert marked == [yard.job(speaking).attempt_id()]
