"""HTTP: kept alive, repeated only where that is safe, errors as exceptions."""

import threading
import time

import pytest

import runyard
from runyard.sdk import errors
from scripted_server import DROP, problem
from yards import until

JOB = {"job_id": "job-abc123", "status": "pending", "submitted_at": "2026-01-01T00:00:00Z"}


def test_one_connection_is_kept_for_many_requests(server, client):
    server.on("GET", "/jobs/job-abc123", JOB)
    for _ in range(3):
        client.get("job-abc123")
    assert len({asked.connection for asked in server.asked}) == 1


def test_the_key_is_sent_as_bearer(server, client):
    """R54"""
    server.on("GET", "/jobs/job-abc123", JOB)
    client.get("job-abc123")
    assert server.asked[0].headers["Authorization"] == "Bearer secret"


def test_threads_have_their_own_connections(server, client):
    server.on("GET", "/jobs/job-abc123", JOB)
    threads = [threading.Thread(target=client.get, args=("job-abc123",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len({asked.connection for asked in server.asked}) == 3


def test_a_read_is_repeated_after_a_dropped_connection(server, client):
    server.on("GET", "/jobs/job-abc123", DROP, DROP, JOB)
    assert client.get("job-abc123")["status"] == "pending"
    assert len(server.asked) == 3


def test_a_change_is_not_repeated(server, client):
    server.on("POST", "/jobs/job-abc123/retry", DROP, JOB)
    with pytest.raises(runyard.ServerUnreachable):
        client.retry("job-abc123")
    assert len(server.asked) == 1


def test_a_lost_answer_to_a_submit_makes_no_second_job(server, client):
    """The same Idempotency-Key is sent with every try."""
    server.on("POST", "/jobs", DROP, JOB)
    assert client.submit(command="true").id == "job-abc123"
    keys = [asked.headers["Idempotency-Key"] for asked in server.asked]
    assert len(keys) == 2
    assert keys[0] == keys[1]


def test_every_submit_has_its_own_key_unless_given(server, client):
    server.on("POST", "/jobs", JOB)
    client.submit(command="true")
    client.submit(command="true")
    client.submit(command="true", idempotency_key="mine")
    keys = [asked.headers["Idempotency-Key"] for asked in server.asked]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_a_connection_the_server_closed_while_idle_is_opened_again(server, client):
    server.on("GET", "/jobs/job-abc123", JOB)
    server.on("POST", "/jobs/job-abc123/hold", JOB)
    client.get("job-abc123")
    server._http.drop_connections()
    # A change is never sent twice, so this works only when the closed connection is noticed first.
    assert client.hold("job-abc123").id == "job-abc123"


def test_nobody_listens(server):
    server.close()
    began = time.monotonic()
    with pytest.raises(runyard.ServerUnreachable) as refused:
        runyard.Client(server.url, "secret").get("job-abc123")
    assert time.monotonic() - began < 60
    assert refused.value.params["url"] == server.url
    assert refused.value.request_id is None


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "http:// /"])
def test_a_bad_address_is_named(url):
    with pytest.raises(runyard.BadRequest):
        runyard.Client(url or "http://", "secret")


def test_a_problem_becomes_its_exception(server, client):
    server.on(
        "GET", "/jobs/job-no", problem(404, "job_not_found", "There is no job.", job="job-no")
    )
    with pytest.raises(runyard.JobNotFound) as missing:
        client.get("job-no")
    assert missing.value.error_code == "job_not_found"
    assert missing.value.params == {"job": "job-no"}
    assert missing.value.request_id == "req-1"
    assert missing.value.status == 404


def test_an_unknown_code_falls_back_to_its_status(server, client):
    server.on("GET", "/jobs/job-no", problem(409, "brand_new", "New."))
    with pytest.raises(errors.Conflict) as new:
        client.get("job-no")
    assert new.value.error_code == "brand_new"


def test_a_proxy_that_answers_in_html(server, client):
    from scripted_server import Reply

    server.on("GET", "/jobs/job-no", Reply(502, b"<html>Bad Gateway</html>"))
    with pytest.raises(errors.Unavailable):
        client.get("job-no")


def test_a_slow_server_is_given_up_once(server):
    server.on("GET", "/jobs/job-abc123", lambda _: time.sleep(1.5) or JOB)
    slow = runyard.Client(server.url, "secret", timeout=0.2)
    with pytest.raises(runyard.ServerUnreachable):
        slow.get("job-abc123")
    until(lambda: server.asked)  # perhaps later than it was given up
    assert len(server.asked) == 1
