"""A client renews the lease of the job it holds."""

import time

import pytest

from runyard.sdk import lease
from runyard.sdk.follower import View
from runyard.sdk.job import Job
from runyard.sdk.lease import Lease
from scripted_server import DROP, problem
from yards import until

ANSWER = {"job_id": "job-a", "lease_s": 0.6, "expires_at": "2030-01-01T00:00:00Z"}


class Warned(View):
    def __init__(self):
        self.times = 0

    def lease_failing(self, _job, _lease_s):
        self.times += 1


@pytest.fixture
def keep(client, monkeypatch):
    monkeypatch.setattr(lease, "_SHORTEST_WAIT_S", 60.0)  # no answer of a busy machine is too late
    kept = []

    def start(length_s=0.6):
        view = Warned()
        made = Lease(client, view, Job(client, {"job_id": "job-a"}), length_s)
        kept.append(made)
        made.keep()
        return view

    yield start
    for made in kept:
        made.let_go()


def asked(server):
    return len(server.requests("POST", "/jobs/job-a/lease"))


def test_renew(server, client):
    server.on("POST", "/jobs/job-a/lease", ANSWER)
    assert client.renew("job-a") == ANSWER


def test_it_is_renewed_again_and_again(server, keep):
    """R56"""
    server.on("POST", "/jobs/job-a/lease", ANSWER)
    view = keep()
    until(lambda: asked(server) >= 4, words="not renewed")
    assert view.times == 0


def test_trouble_is_told_once_and_tried_on(server, keep):
    refusal = problem(503, "shutting_down", "The server is shutting down.")
    server.on("POST", "/jobs/job-a/lease", refusal, refusal, refusal, refusal, ANSWER)
    view = keep()
    until(lambda: asked(server) >= 7, words="given up")
    assert view.times == 1


def test_one_failure_is_nothing(server, keep):
    server.on("POST", "/jobs/job-a/lease", ANSWER, problem(503, "unavailable", "no"), ANSWER)
    view = keep()
    until(lambda: asked(server) >= 4, words="given up")
    assert view.times == 0


def test_a_dead_server_is_tried_again(server, keep):
    server.on("POST", "/jobs/job-a/lease", DROP)
    view = keep()
    until(lambda: view.times, words="not told")
    server.on("POST", "/jobs/job-a/lease", ANSWER)
    before = asked(server)
    until(lambda: asked(server) >= before + 3, words="given up")
    assert view.times == 1


@pytest.mark.parametrize(
    "answer",
    [problem(409, "no_lease", "It has none."), problem(404, "job_not_found", "No such job.")],
)
def test_where_there_is_no_lease_nothing_more_is_asked(server, keep, answer):
    server.on("POST", "/jobs/job-a/lease", answer)
    view = keep(0.3)
    until(lambda: asked(server), words="not asked")
    time.sleep(0.5)
    assert asked(server) == 1
    assert view.times == 0
