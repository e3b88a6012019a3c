"""Wrong requests to a real server: each a clear answer with a code, and nothing half-written."""

import json
import socket

import pytest

from yards import SMALL, RunningYard

JOB = {**SMALL, "command": ["true"]}


@pytest.fixture(scope="module")
def idle_yard(tmp_path_factory):
    """Shared: every request to it is refused, so none can disturb another."""
    yard = RunningYard(tmp_path_factory.mktemp("idle")).start()
    yield yard
    yard.stop()


@pytest.fixture
def unchanged(idle_yard):
    """Whatever the test sent, no job, event or attempt folder may be there after it."""
    yield idle_yard
    assert idle_yard.ask("/jobs") == []
    assert idle_yard.ask("/queue/status")["counts"]["pending"] == 0
    assert list((idle_yard.data / "attempts").iterdir()) == []
    assert idle_yard.call("GET", "/healthz").ok


def problem(answer, status, code):
    assert (answer.status, answer.body["code"]) == (status, code), answer.data[:500]
    assert answer.body["message"]
    assert answer.body["request_id"]
    return answer.body


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"comand": "x"}, "unknown_field", "comand"),
        ({"cpu_cores": "lots"}, "invalid_job", "cpu_cores"),
        ({"cpu_cores": -1}, "invalid_job", "cpu_cores"),
        ({"memory_gb": 10**9}, "invalid_job", "memory_gb"),
        ({"gpu_count": 1.5}, "invalid_job", "gpu_count"),
        ({"gpu_count": 10**6}, "invalid_job", "gpu_count"),
        ({"command": ""}, "invalid_job", "command"),
        ({"command": []}, "invalid_job", "command"),
        ({"command": None}, "invalid_job", "command"),
        ({"name": "two\nlines"}, "invalid_job", "name"),
        ({"name": "bell\x07"}, "invalid_job", "name"),
        ({"priority": "urgent"}, "invalid_job", "priority"),
        ({"working_dir": "not/absolute"}, "invalid_job", "working_dir"),
        ({"env_vars": {"A=B": "1"}}, "invalid_job", "env_vars"),
        ({"timeout_s": 0}, "invalid_job", "timeout_s"),
    ],
)
def test_fields_that_do_not_fit(unchanged, change, code, field):
    body = problem(unchanged.api("POST", "/jobs", {**JOB, **change}), 422, code)
    assert field in json.dumps(body["params"])


def test_the_nearest_right_name_is_told(unchanged):
    body = problem(unchanged.api("POST", "/jobs", {**JOB, "gpu_cout": 1}), 422, "unknown_field")
    assert body["params"]["nearest"] == "gpu_count"


def test_10_mb_body(unchanged):
    """The answer reaches a client that is still sending, and wants the connection closed."""
    big = json.dumps({**JOB, "description": "x" * 10 * 1024 * 1024}).encode()
    problem(unchanged.api("POST", "/jobs", data=big), 413, "too_large")


def test_10_mb_without_saying_so(unchanged):
    """Sent in chunks, so that no header tells the size."""
    head = (
        "POST /api/v1/training/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {unchanged.key}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", unchanged.port), timeout=30) as raw:
        raw.sendall(head.encode())
        for _ in range(200):
            raw.sendall(chunk)
        raw.sendall(b"0\r\n\r\n")
        answer = b""
        while b"request_id" not in answer and (more := raw.recv(65536)):
            answer += more
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"too_large" in answer


@pytest.mark.parametrize(
    "data", [b'{"name": "\xff\xfe"}', b'{"command": ', b"\xff", b'{"a": 1}x', b"[1, 2"]
)
def test_bytes_that_are_no_json(unchanged, data):
    problem(unchanged.api("POST", "/jobs", data=data), 400, "bad_json")


def test_text_that_is_no_unicode(unchanged):
    """A lone surrogate passes every JSON reader and no database."""
    answer = unchanged.api("POST", "/jobs", data=b'{"command": ["true"], "name": "\\ud800"}')
    assert answer.status in (400, 422)
    assert answer.body["code"] in ("invalid_job", "bad_json", "bad_request")


def test_dependency_cycle_in_a_batch(unchanged):
    """`@name` is another job of the same batch; all or none are accepted."""
    jobs = [
        {**JOB, "name": "a", "depends_on": ["@c"]},
        {**JOB, "name": "b", "depends_on": ["@a"]},
        {**JOB, "name": "c", "depends_on": ["@b"]},
        {**JOB, "name": "innocent"},
    ]
    body = problem(unchanged.api("POST", "/jobs/batch", {"jobs": jobs}), 422, "dependency_cycle")
    assert set(body["params"]["jobs"]) == {"a", "b", "c"}
    alone = {**JOB, "name": "a", "depends_on": ["@a"]}
    problem(unchanged.api("POST", "/jobs/batch", {"jobs": [alone]}), 422, "dependency_cycle")


@pytest.mark.parametrize("ref", ["job-2222222222222222", "99999", "@nobody", "nonsense"])
def test_unknown_dependency(unchanged, ref):
    """One bad job keeps the whole batch out."""
    batch = {"jobs": [JOB, {**JOB, "depends_on": [ref]}, JOB]}
    answer = unchanged.api("POST", "/jobs/batch", batch)
    assert (answer.status, answer.body["code"]) in [
        (422, "unknown_dependency"),
        (422, "invalid_job"),
    ], answer.data
    assert ref in answer.data.decode()


def test_a_batch_with_one_wrong_job_is_refused_whole(unchanged):
    batch = {"jobs": [JOB, {**JOB, "cpu_cores": -1}, JOB]}
    problem(unchanged.api("POST", "/jobs/batch", batch), 422, "invalid_job")


def test_a_type_that_is_not_there_yet(unchanged):
    answer = unchanged.api("POST", "/jobs", {**JOB, "job_type": "pipeline"})
    problem(answer, 422, "job_type_not_available")


@pytest.mark.parametrize("path", ["/jobs/job-2222222222222222", "/jobs/77", "/jobs/77/logs"])
def test_jobs_that_are_not_there(unchanged, path):
    problem(unchanged.api("GET", path), 404, "job_not_found")


def test_a_batch_by_names(make_yard):
    """R25: `@name` works in any order, and the jobs run in the order of their dependencies."""
    yard = make_yard(max_concurrent=4).start()
    line = yard.folder / "line"
    names = {"last": ["@middle"], "first": [], "middle": ["@first"]}
    jobs = [
        {**JOB, "name": n, "command": ["sh", "-c", f"echo {n} >>{line}"], "depends_on": waits}
        for n, waits in names.items()
    ]
    answer = yard.api("POST", "/jobs/batch", {"jobs": jobs})
    assert answer.status == 201, answer.data
    for job in answer.body["jobs"]:
        yard.wait(job["job_id"], "completed")
    assert line.read_text().split() == ["first", "middle", "last"]
