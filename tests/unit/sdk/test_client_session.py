"""Sessions against a scripted server: what is asked of it, and what happens when it is silent."""

import io
import os
import threading
import time

import pytest

from runyard import BadRequest, InvalidJob, LocalService, LocalServiceFailed
from runyard.sdk.plain_view import PlainView, ended_line
from scripted_server import Reply, problem
from yards import until

JOB = {"job_id": "job-a", "name": "n", "status": "running", "grace_s": 1.0, "attempt": None}
GONE = JOB | {"status": "cancelled"}
RECEIPT = {
    "processes_ended": 3,
    "proof": "echild",
    "seconds": 0.25,
    "gpus": [{"index": 0, "memory_after_mb": 0}, {"index": 2, "memory_after_mb": 3}],
    "ports": [38001],
}
LISTENING = (
    "import os, socket, time; s = socket.socket(); "
    "s.bind(('127.0.0.1', int(os.environ['RUNYARD_PORT']))); s.listen(); time.sleep(300)"
)


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def service():
    import sys

    return LocalService("reward", [sys.executable, "-c", LISTENING], grace_s=1)


@pytest.fixture
def server(server):
    server.on("POST", "/jobs", Reply(201, JOB | {"status": "pending"}))
    server.on("GET", "/jobs/job-a", JOB)
    server.on("GET", "/jobs/job-a/wait", GONE)
    server.on("GET", "/jobs/job-a/receipt", RECEIPT)
    server.on("POST", "/jobs/job-a/cancel", Reply(202, JOB | {"status": "cancelling"}))
    server.on("POST", "/jobs/job-a/lease", {})
    return server


def asked(server, verb="cancel"):
    return len(server.requests("POST", f"/jobs/job-a/{verb}"))


def test_leaving_cancels_once_and_awaits_the_proof(server, client, capsys):
    """R53"""
    with client.session(command="true") as session:
        assert session.job.id == "job-a"
    session.close()
    assert asked(server) == 1
    assert session.job.status == "cancelled"
    assert capsys.readouterr().err.splitlines() == [
        "runyard: cancelling job-a ...",
        "runyard: job-a cancelled: 3 processes ended in 0.25 s (proof: echild), "
        "GPU 0, 2 given back, port 38001 given back",
    ]


def test_a_job_that_has_ended_is_left_alone(server, client, capsys):
    server.on("GET", "/jobs/job-a", JOB | {"status": "completed"})
    with client.session(command="true"):
        pass
    assert asked(server) == 0
    assert capsys.readouterr().err == ""


def test_a_detached_job_is_left_alone(server, client):
    with client.session(command="true") as session:
        session.detach()
    assert asked(server) == 0


def test_a_job_with_services_cannot_be_detached(server, client, service):
    session = client.session(command="true", local_services=[service])
    with pytest.raises(BadRequest) as caught, session:
        session.detach()
    assert caught.value.error_code == "local_services_end"
    assert asked(server) == 1


def test_the_job_is_told_its_services_and_gets_a_lease(server, client, service):
    with client.session(
        {"command": "x", "services": [{"name": "a", "command": "b"}]},
        name="n",
        local_services=[service],
    ):
        pass
    [request] = server.requests("POST", "/jobs")
    first, second = request.body["services"]
    assert first == {"name": "a", "command": "b"}
    assert second["name"] == "reward"
    assert second["url"].startswith("http://127.0.0.1:")
    assert request.body["lease_s"] == 60
    with client.session(command="x", lease_s=7, local_services=[service]):
        pass
    assert server.requests("POST", "/jobs")[1].body["lease_s"] == 7


def test_a_refused_job_leaves_no_service(server, client, service, capsys):
    server.on("POST", "/jobs", problem(422, "invalid_job", "The job is not valid."))
    with pytest.raises(InvalidJob), client.session(command="x", local_services=[service]):
        pytest.fail("entered")
    assert "local service reward stopped" in capsys.readouterr().err
    assert asked(server) == 0


def test_a_service_that_does_not_start_submits_nothing(server, client):
    broken = LocalService("reward", "exit 3")
    with pytest.raises(LocalServiceFailed), client.session(command="x", local_services=[broken]):
        pytest.fail("entered")
    assert server.requests("POST", "/jobs") == []


def test_a_lost_service_cancels_also_while_the_caller_does_something_else(
    server, client, capsys, tmp_path
):
    import sys

    os.mkfifo(tmp_path / "end")
    waiting = f"os.open({str(tmp_path / 'end')!r}, os.O_RDONLY); os._exit(9)"
    ending = LISTENING.replace("time.sleep(300)", waiting)
    service = LocalService("reward", [sys.executable, "-c", ending])
    with client.session(command="x", local_services=[service]) as session:
        (tmp_path / "end").write_text("")
        until(lambda: asked(server), words="not cancelled")
        with pytest.raises(LocalServiceFailed, match="exit code 9"):
            session.wait()
    told = capsys.readouterr().err
    assert "ended with exit code 9, so job-a is cancelled" in told


def test_an_exception_is_passed_on(server, client):
    """R53"""
    with pytest.raises(ZeroDivisionError), client.session(command="x"):
        raise ZeroDivisionError
    assert asked(server) == 1


def test_a_silent_server_does_not_hold_up_leaving(server, client, capsys):
    """R53"""
    silent = threading.Event()
    with client.session(command="x"):
        for method in ("GET", "POST"):
            server.on(method, "/jobs/job-a.*", lambda _: silent.wait(100))
        began = time.monotonic()
    assert time.monotonic() - began < 60
    silent.set()
    assert "runyard cancel job-a" in capsys.readouterr().err


def test_a_session_of_another_thread(server, client):
    ended = []

    def use():
        with client.session(command="x") as session:
            pass
        ended.append(session.job.status)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(60)
    assert ended == ["cancelled"]
    assert asked(server) == 1


def test_a_closed_stderr_is_no_trouble(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    PlainView().unanswered()
    monkeypatch.setattr("sys.stderr", None)
    PlainView().unanswered()


def test_an_end_without_a_receipt_is_told_plainly():
    assert ended_line({"job_id": "job-a", "status": "cancelled"}) == "job-a cancelled"
    assert ended_line({"job_id": "job-a", "status": "failed"}) == "job-a failed"
