"""What `run` says while a job waits, where there is no terminal to redraw a line on."""

import time
from types import SimpleNamespace

from runyard.cli import live_view
from runyard.cli.live_view import LiveView, estimate_text
from runyard.sdk.job import Job


def job(seconds=60.0, position=1, **params):
    start = time.time() + seconds
    reason = {"code": "max_concurrent", "params": {"running": 2, "limit": 2, **params}}
    wait = {**reason, "position": position, "est_start_low": start, "est_start_high": start}
    data = {"job_id": "job-a", "status": "pending", "reason": reason, "wait": wait}
    return Job(None, data)


def test_a_countdown_is_told_once(capfd):
    """R11: a line where something changed, not one per second."""
    view = LiveView()
    for seconds in (60.0, 59.0, 58.0):
        view.waiting(job(seconds))
    view.waiting(job(57.0, position=2))
    first, second = capfd.readouterr().err.splitlines()
    assert "place 1, may start in" in first
    assert "place 2" in second


def test_measurements_that_move_are_told_once(capfd):
    view = LiveView()
    for value in (91.0, 93.5, 92.0):
        view.waiting(job(value=value))
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_an_estimate_without_a_range_is_one_span(monkeypatch):
    now = time.time()
    monkeypatch.setattr(live_view, "time", SimpleNamespace(time=lambda: now))
    soon, late = now + 30.5, now + 600.5
    one = estimate_text({"est_start_low": soon, "est_start_high": soon})
    assert one == "may start in 30s"
    assert " to " in estimate_text({"est_start_low": soon, "est_start_high": late})


def test_the_first_failure_that_is_tried_again_says_how_not_to(capfd):
    reason = {"code": "retry_delay", "params": {"until": "2026-11-15T10:00:00Z"}}
    waits = Job(None, {"job_id": "job-a", "status": "pending", "reason": reason})
    view = LiveView()
    for number in (1, 2):
        view.attempt_ended(waits, {"number": number, "end": "failed", "exit_code": 7})
    first, second = capfd.readouterr().err.splitlines()
    assert "--retries 0" in first
    assert "--retries 0" not in second
