"""The live socket of a real server: whoever sleeps, is slow or loses the server misses nothing.

R17; issue "Watch": a browser tab that sleeps and returns misses nothing.
"""

import contextlib
import itertools
import json
import socket
import sys
import threading
import time

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from runyard import Client
from yards import BASE, SMALL, TERMINAL, until


@contextlib.contextmanager
def live(yard, *topics, last_id=None, **options):
    """An open socket; nothing reads it but the test."""
    url = yard.url.replace("http", "ws", 1) + BASE + "/monitor/ws"
    headers = {"Authorization": f"Bearer {yard.key}"}
    with connect(url, additional_headers=headers, open_timeout=30, **options) as made:
        request = {"subscribe": list(topics)}
        if last_id is not None:
            request["last_id"] = last_id
        made.send(json.dumps(request))
        yield made


def read_until(made, condition, seconds=60):
    """Messages until the condition holds for them."""
    got, deadline = [], time.monotonic() + seconds
    while not condition(got):
        left = deadline - time.monotonic()
        assert left > 0, f"not in time; last: {json.dumps(got[-2:])[:1500]}"
        with contextlib.suppress(TimeoutError):
            got.append(json.loads(made.recv(timeout=left)))
    return got


def states(messages, topic="jobs"):
    """The newest status of each job that was told."""
    return {
        event["job_id"]: event["status"]
        for message in messages
        if message.get("topic") == topic
        for event in message["events"]
        if event.get("type") == "job"
    }


def submit_many(yard, count, command):
    body = {"jobs": [{"name": "one of many", **SMALL, "command": command}] * count}
    answer = yard.api("POST", "/jobs/batch", body)
    assert answer.ok, answer.data[:500]
    made = answer.body["jobs"] if isinstance(answer.body, dict) else answer.body
    return {job["job_id"] for job in made}


def all_ended(yard, jobs):
    return {job.id for job in Client(yard.url, yard.key).jobs(status=list(TERMINAL))} >= jobs


@pytest.mark.timeout(300)
def test_nothing_is_missed_over_reconnects_while_200_jobs_end(make_yard):
    """R17: connections that live for a moment, with the last id handed on, know every end."""
    yard = make_yard(max_concurrent=8).start()
    with live(yard, "jobs") as made:
        last_id = read_until(made, len)[0]["id"]
    seen, jobs, deadline = {}, set(), time.monotonic() + 200
    for _ in range(4):
        jobs |= submit_many(yard, 50, ["true"])
        while not (jobs <= seen.keys() and {seen[job] for job in jobs} == {"completed"}):
            assert time.monotonic() < deadline, f"{len(seen)} of {len(jobs)} known"
            with live(yard, "jobs", last_id=last_id) as made:
                for message in read_until(made, len):
                    assert "reload" not in message
                    assert message["id"] >= last_id
                    last_id = message["id"]
                    seen |= states([message])


@pytest.mark.timeout(300)
def test_a_client_that_sleeps_catches_up(make_yard):
    """It reads nothing for seconds while jobs end and a log grows; then it has everything."""
    yard = make_yard(max_concurrent=8).start()
    code = "import sys\nfor n in range(60000): print('line', n, 'x' * 100)"
    # A small buffer here: what is not read stays with the server.
    small = socket.create_connection(("127.0.0.1", yard.port), timeout=30)
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    with live(yard, "jobs", sock=small, max_queue=1, ping_interval=None) as made:
        read_until(made, len)
        loud = yard.submit([sys.executable, "-c", code])
        made.send(json.dumps({"subscribe": [f"log:{loud}:0"]}))
        jobs = submit_many(yard, 60, ["true"]) | {loud}
        until(lambda: all_ended(yard, jobs), 120, "the jobs end")
        wanted = 60000

        def everything(got):
            ended = states(got)
            text = sum(
                event["text"].count("\n")
                for message in got
                for event in message.get("events", ())
                if event.get("type") == "text"
            )
            return jobs <= ended.keys() and text == wanted

        got = read_until(made, everything, 120)
        assert {states(got)[job] for job in jobs} == {"completed"}
        pieces = [
            event
            for message in got
            for event in message.get("events", ())
            if event.get("type") == "text"
        ]
        assert all(a["next_offset"] == b["offset"] for a, b in itertools.pairwise(pieces))


@pytest.mark.timeout(200)
def test_a_restarted_server_goes_on_with_the_same_ids(make_yard, tmp_path):
    """Killed with -9 while jobs run; the SDK's watch goes on by itself and knows every end."""
    yard = make_yard("--on-shutdown", "keep", max_concurrent=4).start()
    go = tmp_path / "go"
    command = ["sh", "-c", f"echo begun; while [ ! -e {go} ]; do sleep 0.05; done"]
    jobs = {yard.submit(command) for _ in range(3)}
    seen, first = {}, next(iter(jobs))
    lines = []
    with Client(yard.url, yard.key).watch("jobs", f"log:{first}:0") as watch:

        def follow():
            for message in watch:
                seen.update(states([message]))
                lines.extend(
                    event["text"]
                    for event in message.get("events", ())
                    if event.get("type") == "text"
                )

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        for job in jobs:
            yard.wait(job, "running")
        until(lambda: "begun\n" in lines, words="the log is told")
        before = watch.last_id
        yard.kill9()
        yard.start()
        go.touch()
        until(lambda: {seen.get(job) for job in jobs} == {"completed"}, 90, lambda: str(seen))
        assert watch.last_id > before
        assert lines == ["begun\n"]
    thread.join(10)


def test_a_wrong_key_is_refused(yard):
    url = yard.url.replace("http", "ws", 1) + BASE + "/monitor/ws"
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(url, additional_headers={"Authorization": "Bearer wrong"}),
    ):
        pass
    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body)["code"] == "unauthenticated"
    assert yard.said().count("\n") <= 2, yard.said()


@pytest.mark.timeout(200)
def test_fifty_sockets_at_once_and_a_quick_shutdown(make_yard):
    """All are told the same; open ones do not keep the server from leaving."""
    yard = make_yard().start()
    with contextlib.ExitStack() as stack:
        topics = ("jobs", "system", "alerts")
        sockets = [stack.enter_context(live(yard, *topics)) for _ in range(50)]
        job = yard.submit(["true"])
        for made in sockets:
            read_until(made, lambda got: states(got).get(job) == "completed")
        assert yard.call("GET", "/healthz").ok
        began = time.monotonic()
        assert yard.terminate() == 0
        assert time.monotonic() - began < 40
        for made in sockets[:3]:
            with contextlib.suppress(Exception):
                list(made)
            assert made.close_code in (1001, 1012)


@pytest.mark.timeout(200)
def test_looking_makes_it_be_measured_every_second(make_yard):
    """For as long as somebody looks, and for that job: figures come often."""
    yard = make_yard(env={"RUNYARD_MONITORING_INTERVAL": "3600"}).start()
    job = yard.submit(["sleep", "600"])
    yard.wait(job, "running")

    def measured(got):
        return sum(
            len(event["series"].get("system.rss_mb", {}).get("values", ()))
            for message in got
            for event in message.get("events", ())
            if event.get("type") == "points"
        )

    with live(yard, f"metrics:{job}") as made:
        read_until(made, lambda got: measured(got) >= 3, 60)
    assert yard.cancel(job).ok
