"""The queue, nodes, keys, health."""

import pytest
from served import SMALL


def test_the_queue_in_one_answer(served):
    """R13, R22: what runs, what waits and why."""
    running = served.running()
    waiting = served.submit(gpu_count=1)
    status = served.api("GET", "/queue/status").body
    assert status["dispatching"] is True
    assert status["max_concurrent"] == 4
    assert status["counts"]["running"] == 1
    assert running in [job["job_id"] for job in status["running"]]
    (one,) = [job for job in status["waiting"] if job["job_id"] == waiting]
    assert one["wait"]["position"] == 1
    assert {gate["name"] for gate in status["gates"]} == {"cpu", "memory", "disk"}


def test_dispatching_is_paused_and_started(served):
    """R22: system/stop-queue and start-queue."""
    assert served.api("POST", "/system/stop-queue").body == {"dispatching": False}
    job = served.submit()
    assert served.api("GET", "/queue/status").body["dispatching"] is False
    assert served.job(job)["status"] == "pending"
    assert served.api("POST", "/system/start-queue").body == {"dispatching": True}
    served.wait(job, "running")


def test_enqueue_releases_a_hold_and_sets_the_priority(served):
    """R22."""
    served.api("POST", "/system/stop-queue")
    job = served.submit(hold=True)
    moved = served.api("POST", f"/queue/enqueue/{job}", {"priority": "high"}).body
    assert (moved["hold"], moved["priority"]) == (False, "high")
    assert served.api("POST", f"/queue/enqueue/{job}", priority="low").body["priority"] == "low"
    wrong = served.api("POST", f"/queue/enqueue/{job}", {"priority": "urgent"})
    assert wrong.code == "invalid_request"
    assert served.api("POST", f"/queue/cancel/{job}").body["status"] == "cancelled"
    ended = served.api("POST", f"/queue/enqueue/{job}")
    assert (ended.status, ended.code) == (409, "already_ended")


def test_nodes_and_gpus(served):
    (node,) = served.api("GET", "/nodes").body
    assert node["node_id"] == "node-1"
    assert node["cpu_cores"] == 64
    assert served.api("POST", "/nodes/node-1/drain").body["drained"] is True
    assert served.api("POST", "/nodes/node-1/undrain").body["drained"] is False
    assert served.api("POST", "/nodes/nobody/drain").status == 404
    assert served.api("GET", "/gpus").body == []
    assert served.api("POST", "/gpus/7/fence", {"reason": "hot"}).status == 404


def test_keys_are_made_shown_once_and_revoked(served):
    made = served.api("POST", "/keys", {"name": "carol", "role": "user"})
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    secret = made.body["secret"]
    assert served.api("GET", "/jobs", key=secret).status == 200
    listed = served.api("GET", "/keys").body
    assert "carol" in [key["name"] for key in listed]
    assert secret not in str(listed)
    assert served.api("DELETE", f"/keys/{made.body['key_id']}").status == 204
    assert served.api("GET", "/jobs", key=secret).status == 401
    for wrong in ("999999", "nonsense", "9" * 30):
        assert served.api("DELETE", f"/keys/{wrong}").status == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"role": "user"}, "invalid_request"),
        ({"name": "x", "role": "root"}, "invalid_request"),
        ({"name": "x", "rolle": "user"}, "unknown_field"),
        ({"name": "a\nb"}, "bad_request"),
        ({"name": "admin"}, "conflict"),
        ({"name": "y", "expires_at": 1}, "bad_request"),
    ],
)
def test_wrong_keys_are_refused(served, body, code):
    assert served.api("POST", "/keys", body).code == code


def test_a_key_expires(served):
    made = served.api("POST", "/keys", {"name": "brief", "expires_in_s": 3600}).body
    assert made["role"] == "user"
    assert made["expires_at"] > made["created_at"]


def test_health_needs_no_key(served):
    assert served.call("GET", "/healthz", key="").body["status"] == "ok"
    ready = served.call("GET", "/readyz", key="")
    assert ready.status == 200
    assert ready.body["ok"] is True
    assert ready.body["dispatching"] is True
    away = served.call("GET", "/readyz", key="", headers={"X-Forwarded-For": "10.1.1.1"})
    assert away.body == {"ok": True}


def test_a_server_that_shuts_down_is_not_ready(make_served):
    served = make_served()
    served.yard.runtime.stop_dispatching()
    assert served.call("GET", "/readyz").status == 503
    refused = served.api("POST", "/jobs", {**SMALL, "command": "true"})
    assert (refused.status, refused.code) == (503, "shutting_down")
    assert refused.headers["Retry-After"]


def test_figures_for_prometheus(served):
    answer = served.call("GET", "/metrics", key="")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert b'runyard_jobs{status="running"}' in answer.data
