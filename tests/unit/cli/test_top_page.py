"""The page of `runyard top`."""

import pytest

from runyard.cli import formatting, top_page
from runyard.cli.top_page import Now


def job(number, **more):
    return {
        "job_id": f"job-{number}",
        "name": f"training {number}",
        "status": "running",
        "stage": "running",
        "progress": {"percent": 42.0, "step": 420, "total_steps": 1000},
        "eta": {"seconds": 3700.0},
        "health": {"level": "ok"},
        "metrics": {"loss": 1.25},
        "use": {
            "cpu_cores": 1.5,
            "cpu_cores_given": 4.0,
            "memory_gb": 2.25,
            "memory_gb_given": 16.0,
        },
        **more,
    }


def status(jobs=1, **more):
    return {
        "at": "2026-11-15T10:00:00Z",
        "dispatching": True,
        "max_concurrent": 2,
        "counts": {"pending": 3, "running": jobs, "completed": 5, "failed": 1},
        "nodes": [{"name": "box", "metrics": {"cpu_percent": 50.0, "memory_percent": "NaN"}}],
        "gpus": [
            {
                "index": 0,
                "memory_mb": 81920,
                "used_mb": 0,
                "jobs": [{"job_id": "job-0"}],
                "metrics": {"util": 97.0, "memory_mb": 40960.0, "temperature": 66.0},
            }
        ],
        "running": [job(number) for number in range(jobs)],
        "alerts": {"open": 2},
        **more,
    }


def page(now, width=140, height=None, unicode=True, colour=False):
    return top_page.lines(now, width, height, unicode=unicode, colour=colour)


def test_everything_is_on_it():
    waiting = [{"job_id": "job-w", "name": "later", "status": "pending", "reason": None}]
    losses = {"job-0": [3.0, 2.0, 1.0]}
    text = "\n".join(page(Now(status(), waiting, losses)))
    for word in (
        "1 of at most 2 run, 3 wait, 6 ended",
        "2 alerts",
        "box",
        "cpu █████░░░░░  50%",
        "GPU 0",
        "util ██████████  97%",
        "mem █████░░░░░  50%",
        "66°C",
        "job-0",
        "████░░░░░░  42%",
        "1h 1m",
        "420/1000",
        "1.25",
        "█▅▁",
        "1.5/4C",
        "job-w",
    ):
        assert word in text, f"{word!r} is not in\n{text}"
    assert "\x1b" not in text


def test_nothing_known_yet_and_nothing_running():
    assert page(Now())
    assert any("Nothing runs" in line for line in page(Now(status(jobs=0))))


def test_a_lost_server_and_a_paused_queue_are_told():
    text = page(Now(status(dispatching=False), live=False), colour=True)[0]
    assert "reconnecting" in text
    assert "paused" in text
    assert "\x1b[33m" in text


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    lines = page(Now(status(jobs=3)), width=width)[1:]
    assert all(formatting.columns(line) <= width for line in lines)


@pytest.mark.parametrize("height", [5, 10, 24])
def test_it_fits_and_says_how_many_found_no_room(height):
    waiting = [{"job_id": f"job-w{n}", "status": "pending"} for n in range(20)]
    lines = page(Now(status(jobs=50), waiting), height=height)
    assert len(lines) <= height
    if height > 5:
        assert any("more" in line for line in lines)


def test_without_unicode():
    assert all(line.isascii() for line in page(Now(status(), (), {"job-0": [1.0]}), unicode=False))


def test_what_is_not_known_is_a_dash():
    bare = {"job_id": "job-x", "name": None, "status": "scheduled", "progress": {}, "eta": None}
    told = page(Now(status(running=[bare], nodes=[{"name": "n"}], gpus=[{"index": 1}])))
    assert any("job-x" in line and " - " in line for line in told)
