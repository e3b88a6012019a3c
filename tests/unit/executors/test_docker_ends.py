"""The supervisor's record and the container's become one end."""

import pytest

from runyard.executors.base import End
from runyard.executors.docker_ends import merged
from runyard.executors.docker_runner import docker_end_of


def end(cause="exited", code=0, signal=None):
    return End(code, signal, cause, "supervisor", 20.0, 10.0, receipt={"proof": "echild"})


def told(runner, limit=64, **container):
    seen = merged(runner, container, limit)
    return seen.code, seen.signal, seen.cause


@pytest.mark.parametrize(
    ("runner", "container", "wanted"),
    [
        (end(code=3), {"code": 3}, (3, None, "exited")),
        (end(code=137), {"code": 137, "oom_killed": True}, (137, None, "oom")),
        (end(code=1), {"code": 1, "oom_killed": True}, (1, None, "oom_child")),
        (end(code=0), {"code": 0, "oom_killed": True}, (0, None, "exited")),
        (end("cancelled", 137), {"code": 137, "killed_at": 1.0}, (None, 9, "cancelled")),
        (end("cancelled", 5), {"code": 5, "asked_at": 1.0}, (5, None, "cancelled")),
        (end("timeout", 137), {"code": 137, "killed_at": 1.0}, (None, 9, "timeout")),
        # The runner was killed: what the container had by itself is true, else nobody knows.
        (end("killed_externally", None, 9), {"code": 7}, (7, None, "exited")),
        (end("killed_externally", None, 9), {"code": None}, (None, None, "supervisor_lost")),
        (end(code=125), {"code": None, "cause": "lost"}, (None, None, "lost")),
        (end(code=125), {"code": None, "cause": "start_failed"}, (None, None, "start_failed")),
        (end("cancelled", 125), {"code": None, "cause": ""}, (None, None, "cancelled")),
    ],
)
def test_what_is_told(runner, container, wanted):
    assert told(runner, **container) == wanted


def test_times_and_signals_are_the_containers():
    container = {"code": 0, "started_at": 11.0, "ended_at": 19.0, "asked_at": 18.0, "id": "abc"}
    seen = merged(end("cancelled"), container, None)
    assert (seen.started_at, seen.ended_at) == (11.0, 19.0)
    assert seen.receipt["signals"] == [{"signal": "TERM", "at": 18.0, "target": "container"}]
    assert (seen.receipt["proof"], seen.receipt["container"]) == ("container_removed", "abc")


def test_the_limit_is_told_with_the_memory_that_ran_out():
    assert merged(end(), {"code": 137, "oom_killed": True}, 64).detail == {"limit_mb": 64}


def test_a_start_that_was_noted_after_the_end():
    """As an engine does with a container that ends at once."""
    state = {
        "ExitCode": 1,
        "StartedAt": "2026-11-15T19:54:56.948825482Z",
        "FinishedAt": "2026-11-15T19:54:56.948562621Z",
    }
    fields = docker_end_of({"Id": "abc", "State": state})
    assert fields["started_at"] == fields["ended_at"] == pytest.approx(1794772496.948562)
    never = {**state, "StartedAt": "0001-01-01T00:00:00Z"}
    assert docker_end_of({"Id": "abc", "State": never})["code"] is None
