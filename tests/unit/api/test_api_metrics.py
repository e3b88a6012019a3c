"""GET /jobs/{id}/metrics, and what a job's answer tells of its training."""

from __future__ import annotations

import math

import pytest

from runyard.domain.monitoring.series import Sample
from runyard.domain.progress.estimate import Eta
from runyard.engine.watch.board import Health, Progress

AT = 1_790_000_000.0


@pytest.fixture
def job(served):
    return served.submit(command="sleep 60", hold=True)


def _record(served, job, samples, attempt=1):
    served.yard.runtime.metric_history.put(served.yard.job(job).job.id, attempt, samples)


def _losses(count):
    return [Sample("loss", AT + step, math.sin(step), step) for step in range(count)]


def test_the_shape_of_a_series(served, job):
    """R14, DESIGN section 14"""
    samples = [Sample("loss", AT, 0.5, 1), Sample("loss", AT + 1, 0.25, 2)]
    _record(served, job, [*samples, Sample("system.rss_mb", AT, 100.0)])
    answer = served.api("GET", f"/jobs/{job}/metrics")
    assert answer.status == 200
    assert answer.body == {
        "series": {
            "loss": {
                "steps": [1, 2],
                "times": [AT, AT + 1],
                "values": [0.5, 0.25],
                "sampled": False,
            },
            "system.rss_mb": {
                "steps": [None],
                "times": [AT],
                "values": [100.0],
                "sampled": False,
            },
        }
    }


def test_nan_and_infinities_are_words(served, job):
    values = [math.nan, math.inf, -math.inf]
    _record(served, job, [Sample("loss", AT + n, v, n) for n, v in enumerate(values)])
    answer = served.api("GET", f"/jobs/{job}/metrics")
    assert answer.body["series"]["loss"]["values"] == ["NaN", "Infinity", "-Infinity"]


def test_as_many_points_and_as_much_of_it_as_asked(served, job):
    _record(served, job, _losses(5000))

    def ask(query):
        return served.api("GET", f"/jobs/{job}/metrics?{query}").body["series"]["loss"]

    few = ask("points=50")
    assert len(few["steps"]) <= 50
    assert few["sampled"]
    assert (few["steps"][0], few["steps"][-1]) == (0, 4999)
    assert ask(f"since={AT + 4998}")["steps"] == [4998, 4999]
    assert ask("since_step=4999")["steps"] == [4999]
    assert ask(f"until={AT + 1}")["steps"] == [0, 1]
    assert ask("attempt=2")["steps"] == []


def test_chosen_names(served, job):
    _record(served, job, [Sample(name, AT, 1.0, 1) for name in ("a", "b", "c")])
    for query in ("keys=a,c", "keys=a&keys=c"):
        found = served.api("GET", f"/jobs/{job}/metrics?{query}").body["series"]
        assert sorted(found) == ["a", "c"]
    unknown = served.api("GET", f"/jobs/{job}/metrics?keys=nobody").body["series"]
    assert unknown["nobody"]["values"] == []


@pytest.mark.parametrize(
    "query",
    ["points=0", "points=100000", "since=yesterday", "attempt=0", "since_step=-1", "points=x"],
)
def test_what_cannot_be_asked(served, job, query):
    assert served.api("GET", f"/jobs/{job}/metrics?{query}").status == 422


def test_a_job_that_is_not_there(served):
    assert served.api("GET", "/jobs/job-none/metrics").status == 404


def test_a_job_tells_time_left_health_and_newest_metrics(served, job):
    """R14"""
    board, job_id = served.yard._parts.board, served.yard.job(job).job.id
    now = served.yard._parts.clock()
    board.record(job_id, 1, [Sample("loss", AT, math.nan, 5), Sample("gpu.util", AT, 50.0)])
    board.set_health(job_id, Health("warning", "loss_spike", {"value": 3}, AT))
    eta = Eta(60.0, 50.0, 80.0, now + 60, "steps")
    board.set_progress(job_id, Progress(0.5, 5, 10, 0.5, 1, eta, "report", "training", AT, AT))
    for told in (
        served.api("GET", f"/jobs/{job}").body,
        next(one for one in served.api("GET", "/jobs").body if one["job_id"] == job),
    ):
        assert told["metrics"] == {
            "step": 5,
            "total_steps": 10,
            "epoch": 0.5,
            "total_epochs": 1,
            "loss": "NaN",
        }
        assert told["health"] == {
            "level": "warning",
            "code": "loss_spike",
            "params": {"value": 3},
            "since": "2026-09-21T14:13:20.000000Z",
        }
        assert 0 < told["eta"]["seconds"] <= 60
        assert told["eta"]["low"] <= told["eta"]["seconds"] <= told["eta"]["high"]
        assert told["eta"]["basis"] == "steps"


def test_a_job_of_which_nothing_is_known(served, job):
    told = served.api("GET", f"/jobs/{job}").body
    assert (told["eta"], told["metrics"], told["efficiency"]) == (None, {}, None)
    assert told["health"] == {"level": "unknown", "code": None, "params": {}, "since": None}
