"""What every executor reads and writes in the folders of attempts."""

from __future__ import annotations

import pytest

from runyard.executors.attempt_folders import AttemptFolders, written_in
from runyard.executors.base import Stop
from runyard.supervisor import journal, stop_request

STOP = Stop(seq=1, cause="user", grace_s=5.0, requested_by="ada", requested_at=100.0)


@pytest.fixture
def folders(tmp_path):
    return AttemptFolders(tmp_path)


def test_only_folders_named_like_attempts_are_attempts(folders, tmp_path):
    assert folders.ids() == []
    for name in ("job-a.1", "job-b.2", ".hidden", "with space"):
        (tmp_path / "attempts" / name).mkdir(parents=True)
    (tmp_path / "attempts" / "job-c.1").write_text("a file")
    (tmp_path / "attempts" / "job-d.1").symlink_to(tmp_path)
    assert sorted(folders.ids()) == ["job-a.1", "job-b.2"]


@pytest.mark.parametrize(
    ("service", "rank", "name"),
    [("", 0, "out.log"), ("", 3, "rank-3.log"), ("web", 0, "service-web.log")],
)
def test_each_log_has_its_file(folders, service, rank, name):
    assert folders.log_path("job-a.1", service, rank) == f"{folders.of('job-a.1')}/{name}"


def test_nothing_is_written_where_there_is_no_journal(folders):
    assert folders.written("job-a.1").records == []
    assert written_in("/nowhere/at/all").spec is None


def test_what_is_refused_has_its_end_and_can_never_start(folders):
    """R54: one end record, without a made-up exit code."""
    assert folders.refuse("job-a.1")
    end = folders.written("job-a.1").exit
    assert end is not None
    assert (end["cause"], end["code"], end["by"]) == ("never_started", None, "reconciler")
    assert not journal.create(folders.of("job-a.1"), {"attempt_id": "job-a.1"})


def test_what_was_handed_over_is_not_refused(folders):
    journal.create(folders.of("job-a.1"), {"attempt_id": "job-a.1"})
    assert not folders.refuse("job-a.1")
    assert folders.written("job-a.1").exit is None


def test_a_stop_may_be_asked_for_before_the_start(folders):
    folders.ask_to_stop("job-a.1", STOP)
    asked = stop_request.read(folders.of("job-a.1"))
    assert asked is not None
    assert (asked["seq"], asked["cause"], asked["requested_by"]) == (1, "user", "ada")


def test_when_it_was_touched_and_that_it_is_gone(folders):
    assert folders.touched_at("job-a.1") == 0.0
    folders.ask_to_stop("job-a.1", STOP)
    assert folders.touched_at("job-a.1") > 0.0
    folders.remove("job-a.1")
    folders.remove("job-a.1")
    assert folders.ids() == []
