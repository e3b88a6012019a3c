"""The stop request beside the journal."""

import sys
import threading

import pytest

from runyard.supervisor import journal, stop_request


def write(folder, seq, **fields):
    values = {"cause": "user", "grace_s": 5.0, "requested_by": "ann", "requested_at": 1.5}
    stop_request.write(folder, seq=seq, **{**values, **fields})


def test_comes_back(tmp_path):
    write(str(tmp_path), 3, cause="lease")
    assert stop_request.read(str(tmp_path)) == {
        "seq": 3,
        "cause": "lease",
        "grace_s": 5.0,
        "requested_by": "ann",
        "requested_at": 1.5,
    }
    assert [path.name for path in tmp_path.iterdir()] == ["stop"]


def test_two_threads_that_ask_at_once_damage_nothing(tmp_path):
    """R2: a force-kill that meets a cancel stays a force-kill, and whole."""
    folder, rounds = str(tmp_path), 300
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(rounds):
            barrier = threading.Barrier(2)

            def ask(seq, grace_s, barrier=barrier):
                barrier.wait(60)
                write(folder, seq, grace_s=grace_s, requested_by="x" * (400 if seq % 2 else 1))

            older = threading.Thread(target=ask, args=(2 * number + 1, 40.0))
            newer = threading.Thread(target=ask, args=(2 * number + 2, 0.0))
            older.start(), newer.start()
            older.join(60), newer.join(60)
            request = stop_request.read(folder)
            assert (request["seq"], request["grace_s"]) == (2 * number + 2, 0.0)
    finally:
        sys.setswitchinterval(interval)
    assert [path.name for path in tmp_path.iterdir()] == ["stop"]


def test_older_never_replaces_newer(tmp_path):
    write(str(tmp_path), 5, grace_s=0.0)
    write(str(tmp_path), 4, grace_s=60.0)
    assert stop_request.read(str(tmp_path))["seq"] == 5


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 1}', '{"v": 2, "seq": 1}', "\xff"])
def test_unreadable_is_no_request(tmp_path, text):
    (tmp_path / "stop").write_text(text, encoding="latin-1")
    assert stop_request.read(str(tmp_path)) is None
    write(str(tmp_path), 1)
    assert stop_request.read(str(tmp_path))["seq"] == 1


def test_absent(tmp_path):
    assert stop_request.read(str(tmp_path)) is None


def test_nudge_without_a_supervisor(tmp_path):
    folder = str(tmp_path / "a")
    assert not stop_request.nudge(folder)
    journal.create(folder, {"tag": 1})
    assert not stop_request.nudge(folder)
