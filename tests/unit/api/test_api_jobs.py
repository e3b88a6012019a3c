"""Submit, look at, list, wait for, cancel and retry jobs over HTTP."""

import re
import threading
import time

import pytest
from served import BASE, SMALL, until

EXAMPLE = {
    "name": "ResNet50",
    "job_type": "single",
    "cpu_cores": 8,
    "memory_gb": 32,
    "gpu_count": 2,
    "gpu_type": "RTX 4090",
    "image": "pytorch/pytorch:2.0-cuda11.8",
    "command": "python train.py --epochs 100",
    "dataset_ids": [],
    "output_path": "/workspace/output",
}
FAMILIES = (f"{BASE}/jobs", "/api/training-jobs")


@pytest.mark.parametrize("family", FAMILIES)
def test_both_path_families_submit_list_show_log_and_cancel(served, family):
    """R36, R40: submit gives job_id, status, submitted_at; the list is an array."""
    made = served.call("POST", family, {**SMALL, "command": ["echo", "hello"], "name": "first"})
    assert made.status == 201
    assert re.fullmatch(r"job-[a-z0-9]{6,40}", made.body["job_id"])
    assert made.body["status"] == "pending"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", made.body["submitted_at"])
    job = made.body["job_id"]
    served.wait(job, "running")
    served.write(job, b"hello\n")
    listing = served.call("GET", family)
    assert listing.body[0]["job_id"] == job
    assert int(listing.headers["X-Total-Count"]) >= 1
    shown = served.call("GET", f"{family}/{job}").body
    assert shown["name"] == "first"
    assert served.call("GET", f"{family}/{job}/logs", tail=100).body["logs"] == ["hello"]
    gone = served.call("POST", f"{family}/{job}/cancel", wait=10)
    assert gone.status == 200
    assert gone.body["status"] == "cancelled"
    assert gone.body["receipt"]["proof"] == "echild"
    assert served.call("GET", f"{family}/job-nosuchjob00").code == "job_not_found"


def test_the_example_body_is_accepted_and_waits_with_a_reason(served):
    """R33, R36."""
    job = served.api("POST", "/jobs", EXAMPLE).body["job_id"]
    shown = until(lambda: (found := served.job(job))["wait"] and found)
    assert shown["status"] == "pending"
    assert shown["wait"]["code"]
    assert shown["gpu_count"] == 2
    assert shown["memory_gb"] == 32
    assert shown["image"] == EXAMPLE["image"]
    refused = served.api("POST", "/jobs", {**EXAMPLE, "dataset_ids": [1, 2]})
    assert (refused.status, refused.code) == (422, "unknown_dataset")


def test_a_job_tells_everything_that_was_asked_for(served):
    asked = {
        **SMALL,
        "command": ["python", "x.py", "--lr", "{lr}"],
        "name": "all fields",
        "description": "two\nlines",
        "working_dir": "/tmp",
        "env_vars": {"A": 1, "DEBUG": True, "API_TOKEN": "hidden-value"},
        "ports": ["tensorboard"],
        "priority": "high",
        "labels": {"team": "vision"},
        "params": {"lr": "1e-4"},
        "timeout_s": 60,
        "grace_s": 5,
        "hold": True,
        "retry_delays": [1, 2],
        "array": {"array_id": "a-1", "index": 3, "limit": 2},
        "checkpoint": {"dir": "ckpt"},
        "notify": [{"type": "webhook", "url": "http://x/", "secret": "s3cr3t"}],
    }
    made = served.api("POST", "/jobs", asked)
    warned = {one["params"]["field"] for one in made.body["warnings"]}
    assert warned == set()
    shown = served.job(made.body["job_id"])
    for name in ("command", "name", "description", "working_dir", "priority", "labels", "params"):
        assert shown[name] == asked[name], name
    assert shown["env_vars"] == {"A": "1", "DEBUG": "true", "API_TOKEN": "***"}
    assert shown["ports"] == ["tensorboard"]
    assert shown["timeout_s"] == 60
    assert shown["hold"] is True
    assert shown["reason"]["code"] == "held"
    assert shown["wait"]["code"] == "held"
    assert shown["array"] == {"array_id": "a-1", "index": 3, "limit": 2}
    assert shown["notify"][0]["secret"] == "***"
    assert "hidden-value" not in str(shown)
    assert shown["owner"] == "admin"


def test_a_job_is_found_by_its_number_everywhere(served):
    job = served.running()
    number = served.job(job)["id"]
    assert served.api("GET", f"/jobs/{number}").body["job_id"] == job
    assert served.api("GET", f"/jobs/{number}/attempts").body[0]["job_id"] == job
    assert served.api("POST", f"/jobs/{number}/cancel", wait=10).status == 200


@pytest.mark.parametrize(
    "ref", ["99999999999999999999999", "0", "-1", "job-", "%2e%2e", "%00", "%FF"]
)
def test_ids_that_cannot_be_are_not_found(served, ref):
    answer = served.api("GET", f"/jobs/{ref}")
    assert (answer.status, answer.code) == (404, "job_not_found")


def test_lists_are_filtered_and_paged(served):
    jobs = [
        served.submit(name=f"page {n}", labels={"set": "paged", "n": n}, hold=True)
        for n in range(5)
    ]
    seen, cursor = [], None
    while True:
        query = {"label": "set=paged", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = served.api("GET", "/jobs", **query)
        assert page.headers["X-Total-Count"] == "5"
        seen += [job["job_id"] for job in page.body]
        cursor = page.headers["X-Next-Cursor"]
        if cursor is None:
            break
        assert f"cursor={cursor}" in page.headers["Link"]
        assert 'rel="next"' in page.headers["Link"]
    assert seen == jobs[::-1]
    one = served.api("GET", "/jobs", label=["set=paged", "n=3"]).body
    assert [job["job_id"] for job in one] == [jobs[3]]
    assert [j["job_id"] for j in served.api("GET", "/jobs", q="page 2").body] == [jobs[2]]
    held = served.api("GET", "/jobs", status="pending,retrying", label="set=paged").body
    assert len(held) == 5
    assert served.api("GET", "/jobs", status="completed", label="set=paged").body == []
    assert served.api("GET", "/jobs", owner="nobody").body == []
    assert served.api("GET", "/jobs", type="single", label="set=paged").body != []
    since = served.job(jobs[3])["submitted_at"]
    assert len(served.api("GET", "/jobs", since=since, label="set=paged").body) == 2
    assert served.api("GET", "/jobs", since=str(time.time() + 60)).body == []
    ended = str(time.time())
    assert served.api("GET", "/jobs", ended_since="0", label="set=paged").body == []
    served.api("POST", f"/jobs/{jobs[1]}/cancel")
    found = served.api("GET", "/jobs", ended_since=ended, label="set=paged").body
    assert [job["job_id"] for job in found] == [jobs[1]]
    counted = served.api("GET", "/jobs/counts", ended_since=ended, label="set=paged").body
    assert counted["counts"]["cancelled"] == counted["total"] == 1


@pytest.mark.parametrize(
    "query",
    [
        {"status": "finished"},
        {"type": "quick"},
        {"label": "novalue"},
        {"since": "yesterday"},
        {"ended_since": "tonight"},
        {"limit": "0"},
        {"limit": "501"},
        {"limit": "many"},
    ],
)
def test_wrong_filters_are_refused(served, query):
    answer = served.api("GET", "/jobs", **query)
    assert (answer.status, answer.code) == (422, "invalid_request")
    assert answer.body["params"]["fields"][0]["field"] == next(iter(query))


def test_a_wrong_cursor_is_refused(served):
    answer = served.api("GET", "/jobs", cursor="no cursor of ours")
    assert answer.status in (400, 422)


def test_a_batch_is_accepted_whole_or_not_at_all(served):
    good = {**SMALL, "command": "true", "hold": True, "labels": {"batch": "1"}}
    made = served.api("POST", "/jobs/batch", {"jobs": [good] * 20})
    assert made.status == 201
    assert made.body["count"] == len({job["job_id"] for job in made.body["jobs"]}) == 20
    assert served.api("POST", "/jobs/batch", [good]).status == 201
    before = served.api("GET", "/jobs").headers["X-Total-Count"]
    refused = served.api("POST", "/jobs/batch", [good, {**good, "command": ""}])
    assert refused.code == "invalid_job"
    assert refused.body["params"]["fields"][0]["field"] == "jobs[1].command"
    assert served.api("GET", "/jobs").headers["X-Total-Count"] == before
    for wrong in ([], {"jobs": []}, {"jobs": "x"}, {"jobs": [good], "more": 1}, "x"):
        assert served.api("POST", "/jobs/batch", wrong).code == "invalid_request"


def test_the_same_idempotency_key_gives_the_same_job(served):
    body = {**SMALL, "command": "true", "name": "once"}
    head = {"Idempotency-Key": "k-1"}
    first = served.api("POST", "/jobs", body, headers=head).body["job_id"]
    turned = dict(reversed(body.items()))
    assert served.api("POST", "/jobs", turned, headers=head).body["job_id"] == first
    other = served.api("POST", "/jobs", {**body, "name": "twice"}, headers=head)
    assert (other.status, other.code) == (409, "idempotency_conflict")
    # Another key's requests are its own.
    assert served.api("POST", "/jobs", body, headers=head, key=served.user).body["job_id"] != first
    too_long = served.api("POST", "/jobs", body, headers={"Idempotency-Key": "x" * 300})
    assert too_long.code == "invalid_request"


def test_cancel_without_wait_answers_at_once_and_with_wait_when_gone(served):
    served.executor.stubborn = True
    job = served.running()
    began = time.monotonic()
    asked = served.api("POST", f"/jobs/{job}/cancel")
    assert time.monotonic() - began < 10
    assert (asked.status, asked.body["status"]) == (202, "cancelling")
    assert asked.body["receipt"] is None
    waiting = []
    thread = threading.Thread(
        target=lambda: waiting.append(served.api("POST", f"/jobs/{job}/cancel", wait=50))
    )
    thread.start()
    served.executor.finish(f"{job}.1", None, signal=9, cause="cancelled")
    thread.join(60)
    assert (waiting[0].status, waiting[0].body["status"]) == (200, "cancelled")
    assert waiting[0].body["receipt"]


def test_the_old_paths_wait_by_default(served):
    """R54: DELETE /cancel_job/{id}."""
    job = served.running()
    assert served.call("DELETE", f"/cancel_job/{job}").body["status"] == "cancelled"
    job = served.running()
    assert served.call("POST", f"/api/training-jobs/{job}/cancel").body["status"] == "cancelled"
    served.executor.stubborn = True
    job = served.running()
    assert served.call("DELETE", f"/cancel_job/{job}", wait=0).status == 202


def test_a_job_that_never_ran_is_cancelled_at_once(served):
    job = served.submit(hold=True)
    gone = served.api("POST", f"/jobs/{job}/cancel")
    assert (gone.status, gone.body["status"]) == (200, "cancelled")


def test_cancel_of_an_ended_job_is_a_conflict(served):
    job = served.running()
    served.finish(job)
    assert served.api("POST", f"/jobs/{job}/cancel").code == "already_ended"


@pytest.mark.parametrize("wait", ["-1", "nan", "inf", "601", "soon"])
def test_wrong_waits_are_refused(served, wait):
    assert served.api("POST", "/jobs/1/cancel", wait=wait).code == "invalid_request"


def test_many_are_cancelled_by_id(served):
    jobs = [served.running(), served.submit(hold=True)]
    ended = served.running()
    served.finish(ended)
    answer = served.api(
        "POST", "/jobs/cancel", {"ids": [*jobs, ended, "job-none", jobs[0]]}, wait=10
    ).body
    assert sorted(answer["cancelled"]) == sorted(jobs)
    assert {(one["job_id"], one["code"]) for one in answer["refused"]} == {
        (ended, "already_ended"),
        ("job-none", "job_not_found"),
    }


def test_many_are_cancelled_by_filter(served):
    jobs = [served.submit(hold=True, labels={"sweep": "x"}) for _ in range(3)]
    kept = served.submit(hold=True)
    asked = {"filter": {"label": {"sweep": "x"}}}
    answer = served.api("POST", "/jobs/cancel", asked).body
    assert sorted(answer["cancelled"]) == sorted(jobs)
    assert served.job(kept)["status"] == "pending"
    assert served.api("POST", "/jobs/cancel", {"all": True}).body["cancelled"] == [kept]


@pytest.mark.parametrize(
    "body",
    [{}, {"all": False}, {"ids": ["a"], "all": True}, {"filter": {"status": ["completed"]}}],
)
def test_a_cancel_of_many_must_say_which(served, body):
    kept = served.submit(hold=True)
    assert served.api("POST", "/jobs/cancel", body).code == "invalid_request"
    assert served.job(kept)["status"] == "pending"


def test_force_kill_ends_without_grace(served):
    job = served.running()
    assert served.api("POST", f"/jobs/{job}/force-kill", wait=10).body["status"] == "cancelled"
    codes = [event["code"] for event in served.api("GET", f"/jobs/{job}/events").body]
    assert "job_force_killed" in codes


def test_wait_answers_at_the_end_or_after_the_time(served):
    job = served.running()
    assert served.api("GET", f"/jobs/{job}/wait", timeout=0.05).body["status"] == "running"
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(served.api("GET", f"/jobs/{job}/wait", timeout=50))
    )
    thread.start()
    served.executor.finish(f"{job}.1", 3)
    thread.join(60)
    assert answers[0].body["status"] == "failed"
    assert answers[0].body["attempt"]["exit_code"] == 3
    assert served.api("GET", "/jobs/job-none/wait").code == "job_not_found"


def test_retry_hold_release_and_delete(served):
    job = served.running()
    assert served.api("DELETE", f"/jobs/{job}").code == "not_ended"
    assert served.api("POST", f"/jobs/{job}/retry").code == "not_ended"
    assert served.api("POST", f"/jobs/{job}/hold").status == 409
    served.finish(job, 1)
    again = served.api("POST", f"/jobs/{job}/retry", {"fresh": True})
    assert again.status == 200
    assert again.body["retry_count"] == 1
    served.wait(job, "running")
    served.finish(job, 0, attempt=2)
    attempts = served.api("GET", f"/jobs/{job}/attempts").body
    assert [(one["number"], one["exit_code"]) for one in attempts] == [(1, 1), (2, 0)]
    assert served.api("POST", f"/jobs/{job}/retry", {"frsh": True}).code == "unknown_field"
    assert served.api("DELETE", f"/jobs/{job}").status == 204
    assert served.api("GET", f"/jobs/{job}").status == 404
    held = served.submit(hold=True)
    assert served.api("POST", f"/jobs/{held}/release").body["hold"] is False
    served.wait(held, "running")


def test_what_is_known_of_a_job(served):
    job = served.running()
    assert served.api("GET", f"/jobs/{job}/receipt").status == 404
    served.finish(job)
    assert served.api("GET", f"/jobs/{job}/receipt").body["proof"] == "echild"
    shown = served.job(job)
    assert shown["receipt_url"] == f"{BASE}/jobs/{job}/receipt"
    assert shown["progress"] == 100
    assert shown["health"]["level"] == "unknown"
    assert served.api("GET", f"/jobs/{job}/metrics").body == {"series": {}}
    assert served.api("GET", f"/jobs/{job}/checkpoints").body == []
    assert served.api("GET", f"/jobs/{job}/explain").body["status"] == "completed"
    events = served.api("GET", f"/jobs/{job}/events").body
    assert events[0]["code"] == "job_submitted"
    assert events[0]["actor"] == "admin"
    later = served.api("GET", f"/jobs/{job}/events", after=events[0]["id"]).body
    assert later == events[1:]
    for name in ("metrics", "checkpoints", "explain", "receipt", "attempts", "events"):
        assert served.api("GET", f"/jobs/job-none/{name}").code == "job_not_found"
