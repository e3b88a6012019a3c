"""The live socket with the real application behind a real socket; R17."""

import json
import time

import pytest
from live_client import Live, refused
from served import until

from runyard.domain.monitoring.alert import AlertLevel, NewAlert
from runyard.domain.monitoring.series import Sample
from runyard.engine.watch.board import Progress


def progress(fraction):
    return Progress(fraction, 5, 10, None, None, None, "report", None, None, time.time())


def test_states_are_pushed_with_ids(served):
    """R17: nobody polls, and the word of the new status is in the message."""
    with Live(served, "jobs") as live:
        begun = live.next("jobs")
        assert begun["events"] == []
        job = served.running(name="pushed", labels={"a": "b"})
        row = live.row(job, "running")
        assert (row["type"], row["name"], row["stage"]) == ("job", "pushed", "running")
        assert (row["labels"], row["owner"], row["priority"]) == ({"a": "b"}, "admin", "medium")
        assert row["attempt"]["number"] == 1
        served.finish(job, 3)
        row = live.row(job, "failed")
        assert row["reason"] == {"code": "exit_code", "params": {"code": 3}}
        ids = [message["id"] for message in live.got]
        assert ids == sorted(ids)
        assert ids[-1] > begun["id"]


def test_progress_is_pushed_without_an_event(served):
    job = served.running()
    number = served.yard.job(job).job.id
    with Live(served, "jobs", f"job:{job}") as live:
        live.next("jobs"), live.next(f"job:{job}")
        sample = Sample("loss", time.time(), float("nan"), 5)
        served.parts.board.record(number, 1, [sample])
        served.parts.board.set_progress(number, progress(0.5))
        row = live.until(lambda: live.find(lambda one: one.get("progress") == 50.0, "jobs"))
        assert row["metrics"]["loss"] == "NaN"
        whole = until(lambda: live.find(lambda one: one.get("progress") == 50.0, f"job:{job}"))
        assert whole["command"] == "true"


def test_one_job_tells_every_event_and_its_state(served):
    job = served.running()
    other = served.running()
    with Live(served, f"job:{job}") as live:
        live.next(f"job:{job}")
        served.finish(other)
        served.finish(job)
        live.until(lambda: any(one.get("status") == "completed" for one in live.events()))
        codes = [one["code"] for one in live.events() if one["type"] == "event"]
        assert "job_completed" in codes
        assert other not in json.dumps(live.got)


def test_a_number_names_a_job_as_well(served):
    job = served.running()
    number = served.yard.job(job).job.id
    with Live(served, f"job:{number}") as live:
        assert live.next(f"job:{number}")["events"] == []
        served.finish(job)
        live.row(job, "completed")


def test_a_deleted_job_is_told(served):
    job = served.running()
    served.finish(job)
    with Live(served, "jobs", f"job:{job}") as live:
        live.next("jobs")
        assert served.api("DELETE", f"/jobs/{job}").status in (200, 204)
        gone = {"type": "deleted", "job_id": job}
        live.until(lambda: gone in live.events("jobs") and gone in live.events(f"job:{job}"))


def test_alerts(served):
    with Live(served, "alerts") as live:
        live.next("alerts")
        found = NewAlert("live", AlertLevel.WARNING, "cancel_stale")
        opened = served.yard.alert_desk.open(found)
        live.until(lambda: [one for one in live.events() if one["status"] == "open"])
        served.api("POST", f"/alerts/{opened.id}/close")
        closed = live.until(lambda: [one for one in live.events() if one["status"] == "closed"])
        assert (closed[0]["id"], closed[0]["code"]) == (opened.id, "cancel_stale")


def test_the_system(served):
    with Live(served, "system") as live:
        [state] = live.next("system")["events"]
        assert state["type"] == "system"
        assert {"nodes", "gpus", "counts", "running", "dispatching"} <= state.keys()
        until(lambda: served.parts.board.watchers.is_watched("system"))
        served.api("POST", "/system/stop-queue")
        live.until(lambda: live.events()[-1]["dispatching"] is False)


def test_whoever_comes_back_misses_nothing(served):
    """R17: what happened in between comes at once, with the newest state of each job."""
    with Live(served, "jobs") as live:
        last = live.next("jobs")["id"]
    jobs = [served.running() for _ in range(3)]
    served.finish(jobs[0])
    with Live(served, "jobs", last_id=last) as live:
        live.row(jobs[0], "completed"), live.row(jobs[1], "running"), live.row(jobs[2], "running")
        served.finish(jobs[1])
        live.row(jobs[1], "completed")
        last = live.until(lambda: live.got[-1]["id"] == newest(served) and newest(served))
    with Live(served, "jobs", last_id=last) as live:
        assert live.next("jobs") == {"id": last, "topic": "jobs", "events": []}


def newest(served):
    with served.store.read() as reader:
        return reader.events(limit=100_000)[-1].id


def test_only_the_last_message_of_a_round_has_the_new_id(served):
    """A connection that breaks between two topics loses none of them."""
    with Live(served, "jobs", "alerts") as live:
        begun = {live.next("jobs")["id"], live.next("alerts")["id"]}
        found = NewAlert("round", AlertLevel.ERROR, "cancel_stale")
        served.yard.alert_desk.open(
            NewAlert(found.key, found.level, found.code, job_id=_job_id(served))
        )
        live.until(lambda: live.events("alerts"))
        for message in live.got:
            later = live.got[live.got.index(message) + 1 :]
            assert all(one["id"] >= message["id"] for one in later)
        assert max(begun) < live.got[-1]["id"]


def _job_id(served):
    return served.yard.job(served.submit(hold=True)).job.id


@pytest.mark.parametrize("last_id", [2**40, 10**9])
def test_an_id_of_another_life_means_reload(served, last_id):
    with Live(served, "jobs", last_id=last_id) as live:
        message = live.until(lambda: live.got)[0]
        assert message["reload"] == "jobs"
        job = served.running()
        live.row(job, "running")
        assert live.got[-1]["id"] >= message["id"]


def test_too_large_a_gap_means_reload(make_served, monkeypatch):
    from runyard.api import live_socket

    monkeypatch.setattr(live_socket, "MOST_MISSED", 3)
    served = make_served()
    for _ in range(5):
        served.submit(hold=True)
    with Live(served, "jobs", "alerts", last_id=0) as live:
        live.until(lambda: len(live.got) == 2)
        assert {message["reload"] for message in live.got} == {"jobs", "alerts"}


def test_metrics_come_whole_and_resume(served):
    job = served.running()
    number = served.yard.job(job).job.id
    board, now = served.parts.board, time.time()
    topic = f"metrics:{job}"
    with Live(served, topic) as live:
        begun = live.next(topic)
        assert begun["next"].startswith(f"{topic}:@")
        live.until(lambda: board.watchers.is_watched(f"job:{number}"))
        board.record(number, 1, [Sample("loss", now + n, n / 2, n) for n in range(500)])
        board.record(number, 1, [Sample("loss", now + 500, float("inf"), 500)])
        live.until(lambda: len(live.points("loss")) == 501)
        assert live.points("loss")[2] == (2, 1.0)
        assert live.points("loss")[-1] == (500, "Infinity")
        following = [message["next"] for message in live.got][-1]
    late = [Sample("loss", now + 501 + n, 1.0, 501 + n) for n in range(20)]
    board.record(number, 1, late)
    with Live(served, following) as live:
        live.until(lambda: {501, 520} <= {step for step, _ in live.points("loss")})
        board.record(number, 1, [Sample("loss", now + 600, 2.0, 600)])
        live.until(lambda: live.points("loss")[-1] == (600, 2.0))
        steps = [step for step, _ in live.points("loss")]
        assert len(steps) == len(set(steps))
    with Live(served, f"{topic}:510") as live:
        live.until(lambda: len(live.points("loss")) == 12)
        assert live.points("loss")[0] == (510, 1.0)


def test_a_log_comes_byte_by_byte_and_resumes(served):
    job = served.running()
    topic = f"log:{job}"
    with Live(served, f"{topic}:0") as live:
        live.next(topic)
        served.write(job, "eins\nz€".encode()[:-1])
        live.until(lambda: live.text() == "eins\nz")
        served.write(job, "€".encode()[-1:] + b"\r\xff\n")
        live.until(lambda: live.text() == "eins\nz€\r�\n")
        following = live.got[-1]["next"]
        assert following == f"{topic}:1:12"
    served.write(job, b"more\n")
    with Live(served, following) as live:
        live.until(lambda: live.text() == "more\n")
        served.finish(job)
        [end] = live.until(lambda: [one for one in live.events() if one["type"] == "end"])
        assert (end["status"], end["attempt"]) == ("completed", 1)
        served.api("POST", f"/jobs/{job}/retry")
        served.wait(job, "running")
        served.write(job, b"again\n", 2)
        live.until(lambda: live.text() == "more\nagain\n")
        assert {"type": "attempt", "number": 2} in live.events()


def test_the_log_of_another_rank(served):
    """R30: of a distributed job; a rank that is not there is told."""
    job = served.running(distributed={"procs_per_node": 2})
    topic = f"log:{job}/1"
    with Live(served, f"{topic}:0") as live:
        live.next(topic)
        served.write(job, b"of rank 0")
        with open(served.executor.log_path(f"{job}.1", "", 1), "ab") as file:
            file.write(b"of rank 1")
        live.until(lambda: live.text() == "of rank 1")
        assert live.got[-1]["next"] == f"{topic}:1:9"
    with Live(served, f"log:{job}/2:0") as live:
        message = live.until(lambda: [one for one in live.got if "error" in one])[0]
        assert message["error"]["code"] == "not_found"


def test_a_log_before_the_first_attempt(served):
    job = served.submit(hold=True)
    with Live(served, f"log:{job}") as live:
        live.next(f"log:{job}")
        served.api("POST", f"/jobs/{job}/release")
        served.wait(job, "running")
        served.write(job, b"hello")
        live.until(lambda: live.text() == "hello")


def test_unsubscribing(served):
    with Live(served, "jobs", "alerts") as live:
        live.next("jobs"), live.next("alerts")
        live.say({"unsubscribe": ["jobs"]})
        live.say({"unsubscribe": ["nothing"], "subscribe": ["system"]})
        live.next("system")
        served.running()
        found = NewAlert("unsubscribed", AlertLevel.WARNING, "cancel_stale")
        served.yard.alert_desk.open(found)
        live.until(lambda: live.events("alerts"))
        assert live.events("jobs") == []


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("{", "bad_json"),
        ("[]", "bad_json"),
        ('{"subscribe": [1]}', "invalid_request"),
        ('{"subscribe": {"jobs": 1}}', "invalid_request"),
        ('{"subscribe": ["jobs"], "last_id": -1}', "invalid_request"),
        ('{"subscribe": ["jobs"], "last_id": true}', "invalid_request"),
        ('{"subscribe": ["jobs"], "last_id": "x"}', "invalid_request"),
        ('{"subscribe": ["nothing"]}', "invalid_request"),
        ('{"subscribe": ["jobs:1"]}', "invalid_request"),
        ('{"subscribe": ["job"]}', "invalid_request"),
        ('{"subscribe": ["job:../../etc"]}', "invalid_request"),
        ('{"subscribe": ["log:1:-5"]}', "invalid_request"),
        ('{"subscribe": ["log:1/x:0"]}', "invalid_request"),
        ('{"subscribe": ["job:1/1"]}', "invalid_request"),
        ('{"subscribe": ["log:1:9999999999999999999999"]}', "invalid_request"),
        ('{"subscribe": ["metrics:1:x"]}', "invalid_request"),
        ('{"subscribe": ["job:job-nothing0000"]}', "job_not_found"),
        ('{"subscribe": ["metrics:999999"]}', "job_not_found"),
        ('{"subscribe": ["log:999999:0"]}', "job_not_found"),
    ],
)
def test_what_cannot_be_understood_is_told_and_nothing_breaks(served, said, code):
    with Live(served) as live:
        live.say(said)
        message = live.until(lambda: live.got)[0]
        assert message["error"]["code"] == code
        live.say({"subscribe": ["jobs"], "topics": ["left to newer servers"]})
        live.next("jobs")


def test_a_flood_of_topics_is_refused(served):
    job = served.submit(hold=True)
    number = served.yard.job(job).job.id
    with Live(served) as live:
        many = [f"log:{'0' * zeros}{number}" for zeros in range(210)]
        live.say({"subscribe": many})
        live.until(lambda: any("error" in message for message in live.got))


def test_strangers_are_refused(served):
    """R17 and the checks of HTTP: key, host, origin."""
    assert refused(served, "") == 401
    assert refused(served, "wrong") == 401
    assert refused(served, served.key, host="evil.example") == 421
    assert refused(served, served.key, origin="http://evil.example") == 403
    assert refused(served, served.key, path="/monitor/nothing") in (403, 404)
    origin = f"http://127.0.0.1:{served.port}"
    with Live(served, "jobs", origin=origin, key=served.viewer) as live:
        live.next("jobs")


def test_a_page_gives_its_key_as_a_protocol(served):
    protocols = ["runyard", f"bearer.{served.viewer}"]
    with Live(served, "jobs", key="", subprotocols=protocols) as live:
        assert live.socket.subprotocol == "runyard"
        live.next("jobs")
    assert refused(served, "", subprotocols=["runyard", "bearer.wrong"]) == 401


def test_a_revoked_key_loses_its_socket(make_served, monkeypatch):
    from runyard.api import live_socket

    monkeypatch.setattr(live_socket, "_CHECK_KEY_S", 0.2)
    served = make_served()
    key, secret = served.yard.key_ring.create("leaver", "viewer")
    with Live(served, "jobs", key=secret) as live:
        live.next("jobs")
        assert served.api("DELETE", f"/keys/{key.key_id}").status in (200, 204)
        live.until(lambda: live.closed)
        assert live.socket.close_code == 1008


def test_at_most_four_batches_a_second(served):
    """However much happens, and all of it arrives."""
    with Live(served, "jobs") as live:
        live.next("jobs")
        began = time.monotonic()
        jobs = {served.submit(hold=True) for _ in range(60)}
        live.until(lambda: jobs <= {one.get("job_id") for one in live.events("jobs")})
        took = time.monotonic() - began
        assert len(live.got) <= 2 + 4 * took
