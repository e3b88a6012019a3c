"""Logs over HTTP: lines, bytes, and the event stream."""

import contextlib
import http.client
import socket
import threading
import time
from urllib.parse import urlencode

import pytest
from served import BASE, until

from runyard.supervisor import kernel


class Stream:
    """A reader of server-sent events in its own thread."""

    def __init__(self, served, job, *, last_id=None, **query):
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=100)
        path = f"{BASE}/jobs/{job}/logs?" + urlencode({"follow": "true", **query})
        headers = {"Authorization": f"Bearer {served.key}"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        self.connection.request("GET", path, headers=headers)
        self._socket = self.connection.sock
        self.answer = self.connection.getresponse()
        self.events, self.over = [], False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        kind, data, ident = "message", [], None
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            name, _, value = text.partition(": ")
            if not text and data:
                self.events.append((kind, "\n".join(data), ident))
            if not text:
                kind, data, ident = "message", [], None
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            elif name == "id":
                ident = value
        self.over = True

    def lines(self):
        return [data for kind, data, _ in self.events if kind == "message"]

    def kinds(self):
        return [kind for kind, _, _ in self.events]

    def ids(self):
        return [ident for _, _, ident in self.events if ident]

    def hang_up(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self.answer.close()
        self.connection.close()
        self._socket.close()


@pytest.fixture
def follow():
    made = []

    def begin(served, job, **options):
        made.append(Stream(served, job, **options))
        return made[-1]

    yield begin
    for stream in made:
        stream.hang_up()


def test_lines_of_a_running_job(served):
    """R36: logs?tail=100."""
    job = served.running()
    served.write(job, b"".join(b"line %d\n" % n for n in range(5000)))
    served.write(job, b"bin \xff\xfe\x00 end\n" + b"\rbar 1%\rbar 2%\n" + b"last")
    body = served.api("GET", f"/jobs/{job}/logs", tail=3).body
    assert body["logs"] == ["bin \ufffd\ufffd\x00 end", "bar 2%", "last"]
    assert (body["attempt"], body["ended"], body["complete"]) == (1, False, True)
    assert len(served.api("GET", f"/jobs/{job}/logs").body["logs"]) == 100
    part = served.api("GET", f"/jobs/{job}/logs", **{"from": 10, "limit": 3}).body
    assert (part["logs"], part["from"], part["next"]) == (
        ["line 10", "line 11", "line 12"],
        10,
        13,
    )
    found = served.api("GET", f"/jobs/{job}/logs", tail=10, grep="line 4321").body
    assert (found["logs"], found["numbers"]) == (["line 4321"], [4321])
    wild = served.api("GET", f"/jobs/{job}/logs", grep=r"^line 49\d9$", regex="true").body
    assert len(wild["logs"]) == 10
    assert served.api("GET", f"/jobs/{job}/logs", grep="(", regex="true").code == "invalid_request"


def test_the_bytes_of_a_log(served):
    job = served.running()
    data = bytes(range(256)) * 2000
    served.write(job, data)
    raw = served.api("GET", f"/jobs/{job}/logs", raw="true")
    assert raw.data == data
    assert raw.headers["X-Log-Size"] == str(len(data))
    assert raw.headers["Content-Type"] == "application/octet-stream"
    part = served.api("GET", f"/jobs/{job}/logs", raw="true", offset=1000, length=50)
    assert part.data == data[1000:1050]


@pytest.mark.parametrize(
    "query",
    [
        {"tail": -1},
        {"tail": "all"},
        {"from": -5},
        {"attempt": 0},
        {"rank": -1},
        {"raw": "perhaps"},
    ],
)
def test_wrong_questions_are_refused(served, query):
    job = served.submit(hold=True)
    assert served.api("GET", f"/jobs/{job}/logs", **query).code == "invalid_request"


def test_a_job_without_an_attempt_has_an_empty_log(served):
    job = served.submit(hold=True)
    body = served.api("GET", f"/jobs/{job}/logs").body
    assert body["logs"] == []
    assert body["attempt"] is None
    assert served.api("GET", f"/jobs/{job}/logs", raw="true").data == b""
    assert served.api("GET", f"/jobs/{job}/logs", attempt=2).status == 404
    assert served.api("GET", "/jobs/job-none/logs").code == "job_not_found"


def test_logs_of_each_attempt(served):
    job = served.running(retry_delays=[0], max_retries=1)
    served.write(job, b"first\n")
    served.executor.finish(f"{job}.1", 1)
    until(lambda: len(served.api("GET", f"/jobs/{job}/attempts").body) == 2)
    served.wait(job, "running")
    served.write(job, b"second\n", attempt=2)
    assert served.api("GET", f"/jobs/{job}/logs", attempt=1).body["logs"] == ["first"]
    assert served.api("GET", f"/jobs/{job}/logs").body["logs"] == ["second"]
    assert served.api("GET", f"/jobs/{job}/logs", rank=1).status == 404


def test_following_from_the_first_line_to_the_end(served, follow):
    job = served.running()
    served.write(job, b"early\n")
    stream = follow(served, job)
    assert stream.answer.headers["Content-Type"].startswith("text/event-stream")
    until(lambda: stream.lines() == ["early"])
    served.write(job, b"one\ntwo\n\npart")
    until(lambda: ("partial", "part", None) in stream.events)
    served.finish(job)
    until(lambda: stream.over)
    assert stream.lines() == ["early", "one", "two", "", "part"]
    kind, data, _ = stream.events[-1]
    assert kind == "end"
    assert '"status":"completed"' in data
    assert stream.ids()[-1] == "1:19"


def test_following_an_ended_job_ends_at_once(served, follow):
    job = served.running()
    served.write(job, b"a\nb\n")
    served.finish(job)
    stream = follow(served, job)
    until(lambda: stream.over)
    assert stream.lines() == ["a", "b"]
    assert stream.kinds()[-1] == "end"


def test_a_lost_connection_goes_on_where_it_was(served, follow):
    job = served.running()
    served.write(job, b"".join(b"line %d\n" % n for n in range(50)))
    stream = follow(served, job)
    until(lambda: len(stream.lines()) == 50)
    seen = stream.ids()[29]
    stream.hang_up()
    served.write(job, b"line 50\n")
    again = follow(served, job, last_id=seen)
    until(lambda: len(again.lines()) == 21)
    assert again.lines() == [f"line {n}" for n in range(30, 51)]
    plain = follow(served, job, last_id=seen.partition(":")[2])
    until(lambda: len(plain.lines()) == 21)
    for last_id in ("nonsense", "9:0", "1:-5", "1:" + "9" * 50):
        answer = served.api(
            "GET", f"/jobs/{job}/logs", follow="true", headers={"Last-Event-ID": last_id}
        )
        assert answer.code == "invalid_request"
    served.finish(job)


def test_following_from_a_place(served, follow):
    job = served.running()
    served.write(job, b"".join(b"line %d\n" % n for n in range(100)))
    served.finish(job)
    for query, first in (({"tail": 2}, 98), ({"from": 90}, 90), ({"offset": 7 * 3}, 3)):
        stream = follow(served, job, **query)
        until(lambda stream=stream: stream.over)
        assert stream.lines() == [f"line {n}" for n in range(first, 100)]
    stream = follow(served, job, grep="7")
    until(lambda: stream.over)
    assert len(stream.lines()) == 19


def test_a_progress_bar_is_folded(served, follow):
    """log_carriage_return_progress: a few states of the bar, then its last one as the line."""
    job = served.running()
    stream = follow(served, job)
    for n in range(200):
        served.write(job, b"\rbar %3d%%" % (n // 2))
    until(lambda: ("partial", "bar  99%", None) in stream.events)
    served.write(job, b"\ndone\n")
    until(lambda: stream.lines() == ["bar  99%", "done"])
    assert stream.kinds().count("partial") < 50
    served.finish(job)


def test_following_begins_before_the_job_does(served, follow):
    job = served.submit(hold=True)
    stream = follow(served, job)
    served.api("POST", f"/jobs/{job}/release")
    served.wait(job, "running")
    served.write(job, b"hello\n")
    until(lambda: stream.lines() == ["hello"])
    assert stream.kinds()[0] == "attempt"
    served.finish(job)
    until(lambda: stream.over)


def test_following_a_job_that_is_cancelled_before_it_starts(served, follow):
    job = served.submit(hold=True)
    stream = follow(served, job)
    served.api("POST", f"/jobs/{job}/cancel")
    until(lambda: stream.over)
    assert '"status":"cancelled"' in stream.events[-1][1]


def test_following_goes_on_into_the_next_attempt(served, follow):
    job = served.running(retry_delays=[0], max_retries=1)
    stream = follow(served, job)
    served.write(job, b"first\n")
    until(lambda: stream.lines() == ["first"])
    served.executor.finish(f"{job}.1", 1)
    until(lambda: len(served.api("GET", f"/jobs/{job}/attempts").body) == 2)
    served.wait(job, "running")
    served.write(job, b"second\n", attempt=2)
    until(lambda: stream.lines() == ["first", "second"])
    assert ("attempt", '{"number":2}', None) in stream.events
    served.finish(job, attempt=2)
    until(lambda: stream.over)
    only = follow(served, job, attempt=1)
    until(lambda: only.over)
    assert only.lines() == ["first"]


def test_a_huge_bar_is_followed_in_little_memory(served, follow):
    job = served.running()
    served.write(job, b"\r".join(b"step %d" % n for n in range(400_000)) + b"\nend\n")
    served.finish(job)
    stream = follow(served, job)
    until(lambda: stream.over)
    assert stream.lines() == ["step 399999", "end"]
    assert stream.ids()[-1].endswith(str(served.api("GET", f"/jobs/{job}/logs").body["size"]))


def test_followers_hold_no_threads(served, follow):
    """Every endpoint that waits holds no thread: many followers, and the server still answers."""
    job = served.running()
    streams = [follow(served, job) for _ in range(60)]
    began = time.monotonic()
    assert served.api("GET", f"/jobs/{job}").status == 200
    assert time.monotonic() - began < 60
    served.write(job, b"for all\n")
    until(lambda: all(stream.lines() == ["for all"] for stream in streams))
    served.finish(job)
    until(lambda: all(stream.over for stream in streams))


def test_a_server_that_goes_away_ends_streams_without_an_end_event(make_served, follow):
    served = make_served()
    job = served.running()
    stream = follow(served, job)
    waiting = []
    thread = threading.Thread(
        target=lambda: waiting.append(served.api("GET", f"/jobs/{job}/wait", timeout=60))
    )
    thread.start()
    served.write(job, b"x\n")
    until(lambda: stream.lines() == ["x"])
    served.yard.hub.close()
    until(lambda: stream.over)
    assert "end" not in stream.kinds()
    thread.join(60)
    assert waiting[0].body["status"] == "running"


def test_a_log_on_another_server_is_passed_on(make_served, monkeypatch, follow):
    """Two servers on one database: logs are asked of the one that owns the attempt."""
    here, there = make_served(), make_served()
    job = there.running()
    there.write(job, b"far away\n")
    url = f"http://127.0.0.1:{there.port}"
    monkeypatch.setattr(here.yard, "node_url_of", lambda *_: url)
    answer = here.api("GET", f"/jobs/{job}/logs", key=there.key)
    assert answer.status == 401  # the key is checked here first
    monkeypatch.setattr(here.yard, "authenticate", there.yard.authenticate)
    here.app.state.auth._authenticate = there.yard.authenticate
    here.app.state.auth.forget()
    here.key = there.key
    assert here.api("GET", f"/jobs/{job}/logs").body["logs"] == ["far away"]
    assert here.api("GET", f"/jobs/{job}/logs", raw="true").data == b"far away\n"
    stream = follow(here, job)
    there.write(job, b"more\n")
    until(lambda: stream.lines() == ["far away", "more"])
    there.finish(job)
    until(lambda: stream.over)
    assert here.api("GET", f"/jobs/{job}/logs", attempt=7).status == 404


def test_a_server_that_does_not_answer_is_named(make_served, monkeypatch):
    served = make_served()
    job = served.running()
    url = "http://127.0.0.1:9"
    monkeypatch.setattr(served.yard, "node_url_of", lambda *_: url)
    answer = served.api("GET", f"/jobs/{job}/logs")
    assert (answer.status, answer.code) == (503, "unavailable")
    assert url in answer.body["message"]
    # Asked by another server it does not ask on.
    passed = served.api("GET", f"/jobs/{job}/logs", headers={"X-Runyard-Forwarded": "1"})
    assert passed.status == 200


def test_a_gap_is_told_in_every_form(served, follow):
    """log_1gb_bounded_by_holes as people see it."""
    job = served.running()
    data = b"".join(b"line %06d\n" % n for n in range(400_000))
    served.write(job, data)
    path = served.executor.log_path(f"{job}.1")
    with open(path, "r+b") as file:
        if not kernel.punch_hole(file.fileno(), 1 << 20, 4 << 20):
            pytest.skip("this file system has no holes")
    served.finish(job)
    around = data[: 1 << 20].count(b"\n")
    body = served.api("GET", f"/jobs/{job}/logs", **{"from": around - 1, "limit": 5}).body
    (gap,) = body["gaps"]
    assert gap["bytes"] == 3 << 20
    assert body["logs"][gap["at"]] == "[... 3.0 MiB dropped here ...]"
    raw = served.api("GET", f"/jobs/{job}/logs", raw="true").data
    assert raw == data[: 1 << 20] + b"\n[... 3.0 MiB dropped here ...]\n" + data[4 << 20 :]
    stream = follow(served, job, offset=(1 << 20) - 50)
    until(lambda: stream.over)
    (told,) = [(data, ident) for kind, data, ident in stream.events if kind == "gap"]
    assert '"bytes":3145728' in told[0]
    assert told[1] == f"1:{4 << 20}"
    assert stream.lines()[-1] == "line 399999"


def test_a_tail_with_the_outline_of_the_whole_log(served):
    """R37: the page opens at the end, and its scroll bar spans every line."""
    job = served.running()
    data = b"".join(b"line %d\n" % n for n in range(5000)) + b"bar 1%\rbar 2%"
    served.write(job, data)
    body = served.api("GET", f"/jobs/{job}/logs", tail=2, outline="true").body
    assert body["logs"] == ["line 4999", "bar 2%"]
    place = {"unfinished": True, "resume": len(data) - 6, "dropped": []}
    assert body["outline"] == {"total": 5001, **place}
    assert "outline" not in served.api("GET", f"/jobs/{job}/logs", tail=2).body
