"""Each method asks what the API documents and returns what it answers."""

import time

import pytest

import runyard
from scripted_server import Reply, problem

JOB = {"job_id": "job-abc123", "name": "n", "status": "running", "progress": 12.5}


def test_submit_takes_a_mapping_and_keywords(server, client):
    server.on("POST", "/jobs", Reply(201, {"job_id": "job-abc123", "status": "pending"}))
    job = client.submit({"command": "true", "name": "a"}, name="b")
    assert server.asked[0].body == {"command": "true", "name": "b"}
    assert (job.id, job.name, job.status) == ("job-abc123", "b", "pending")


def test_submit_many_is_one_request(server, client):
    made = [{"job_id": f"job-{n}", "status": "pending"} for n in range(3)]
    server.on("POST", "/jobs/batch", Reply(201, {"jobs": made, "count": 3}))
    jobs = client.submit_many([{"command": "true"}] * 3)
    assert [job.id for job in jobs] == ["job-0", "job-1", "job-2"]
    assert len(server.asked[0].body["jobs"]) == 3


def test_jobs_goes_over_pages(server, client):
    pages = [
        Reply(200, [{"job_id": "job-3"}, {"job_id": "job-2"}], {"X-Next-Cursor": "c1"}),
        Reply(200, [{"job_id": "job-1"}], {"X-Total-Count": "3"}),
    ]
    server.on("GET", "/jobs", *pages)
    found = [job.id for job in client.jobs(status=["running", "pending"], labels={"team": "a"})]
    assert found == ["job-3", "job-2", "job-1"]
    first, second = server.asked
    assert first.query["status"] == ["running", "pending"]
    assert first.query["label"] == ["team=a"]
    assert second.query["cursor"] == ["c1"]


def test_jobs_stops_at_its_limit(server, client):
    server.on("GET", "/jobs", lambda asked: Reply(200, [JOB] * int(asked.query["limit"][0])))
    assert len(list(client.jobs(limit=3))) == 3
    assert len(server.asked) == 1


def test_wait_asks_again_until_the_end(server, client):
    ended = JOB | {"status": "failed", "attempt": {"exit_code": 3, "end": "failed"}}
    server.on("GET", "/jobs/job-abc123/wait", JOB, ended)
    job = client.wait("job-abc123")
    assert job.ended
    assert job.exit_code == 3


def test_wait_has_a_limit(server, client):
    server.on("GET", "/jobs/job-abc123/wait", JOB)
    began = time.monotonic()
    with pytest.raises(runyard.WaitTimeout) as over:
        client.wait("job-abc123", timeout=0.3)
    assert time.monotonic() - began < 60
    assert over.value.params["status"] == "running"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"status": "completed", "attempt": {"exit_code": 0}}, 0),
        ({"status": "failed", "attempt": {"exit_code": 7}}, 7),
        ({"status": "failed", "attempt": {"exit_code": None, "signal": 11}}, 139),
        (
            {"status": "failed", "attempt": {"exit_code": None, "signal": 15, "end": "timed_out"}},
            124,
        ),
        ({"status": "failed", "attempt": {"exit_code": 0}}, 1),
        ({"status": "failed", "attempt": None}, 1),
        ({"status": "cancelled", "attempt": {"exit_code": 0}}, 143),
    ],
)
def test_exit_code_as_a_shell_would_tell_it(client, data, code):
    assert runyard.Job(client, data).exit_code == code


def test_cancel_says_how_long_it_waits(server, client):
    server.on(
        "POST", "/jobs/job-abc123/cancel", {"status": "cancelled", "receipt": {"seconds": 1}}
    )
    answer = client.cancel("job-abc123", wait=2.5)
    assert answer["status"] == "cancelled"
    assert server.asked[0].query == {"wait": ["2.5"]}


def test_logs_name_their_range(server, client):
    server.on("GET", "/jobs/job-abc123/logs", {"logs": ["a", "b"]})
    assert client.logs("job-abc123", start=0, limit=2, grep="x", attempt=1) == ["a", "b"]
    wanted = {"from": ["0"], "limit": ["2"], "grep": ["x"], "attempt": ["1"]}
    assert server.asked[0].query == wanted


def test_log_bytes_are_exact(server, client):
    data = b"bin \xff\x00\r\nend"
    server.on("GET", "/jobs/job-abc123/logs", Reply(200, data))
    assert client.log_bytes("job-abc123", offset=5, length=100) == data
    assert server.asked[0].query == {"raw": ["true"], "offset": ["5"], "length": ["100"]}


def test_ids_are_escaped(server, client):
    with pytest.raises(runyard.NotFound):
        client.get("../keys?x=1")
    assert server.asked[0].path.endswith("/jobs/..%2Fkeys%3Fx%3D1")


def test_everything_else_asks_its_own_route(server, client):
    server.on("POST", ".*", {"job_id": "job-abc123"})
    server.on("GET", ".*", [])
    server.on("DELETE", ".*", None)
    client.hold(5)
    client.release(5)
    client.enqueue(5, priority="high")
    client.start_queue()
    client.stop_queue()
    client.drain("n 1")
    client.undrain("n1")
    client.fence(0, reason="hot")
    client.unfence("GPU-x")
    client.create_key("ci", role="viewer")
    client.revoke_key(3)
    client.delete(5)
    client.force_kill(5)
    client.cancel_many([1, "job-2"], force=True)
    client.keys(), client.nodes(), client.gpus(), client.attempts(5), client.events(5)
    paths = [f"{one.method} {one.path.removeprefix('/api/v1/training')}" for one in server.asked]
    assert paths == [
        "POST /jobs/5/hold",
        "POST /jobs/5/release",
        "POST /queue/enqueue/5",
        "POST /system/start-queue",
        "POST /system/stop-queue",
        "POST /nodes/n%201/drain",
        "POST /nodes/n1/undrain",
        "POST /gpus/0/fence",
        "POST /gpus/GPU-x/unfence",
        "POST /keys",
        "DELETE /keys/3",
        "DELETE /jobs/5",
        "POST /jobs/5/force-kill",
        "POST /jobs/cancel",
        "GET /keys",
        "GET /nodes",
        "GET /gpus",
        "GET /jobs/5/attempts",
        "GET /jobs/5/events",
    ]
    assert server.asked[13].body == {"ids": ["1", "job-2"], "force": True}


def test_the_local_data_directory_is_the_default(server, tmp_path, monkeypatch):
    (tmp_path / "server.json").write_text(f'{{"url": "{server.url}", "pid": 1}}')
    (tmp_path / "admin.key").write_text("local-key\n")
    monkeypatch.setenv("RUNYARD_DATA_DIR", str(tmp_path))
    server.on("GET", "/jobs/1", JOB)
    with runyard.Client() as client:
        client.get(1)
    assert server.asked[0].headers["Authorization"] == "Bearer local-key"


def test_a_key_found_here_is_not_sent_elsewhere(server, tmp_path, monkeypatch):
    (tmp_path / "server.json").write_text('{"url": "http://127.0.0.1:1"}')
    (tmp_path / "admin.key").write_text("local-key\n")
    monkeypatch.setenv("RUNYARD_DATA_DIR", str(tmp_path))
    server.on("GET", "/jobs/1", problem(401, "unauthenticated", "A key is needed."))
    with runyard.Client(server.url) as client, pytest.raises(runyard.Unauthenticated):
        client.get(1)
    assert "Authorization" not in server.asked[0].headers
