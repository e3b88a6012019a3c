"""Bad input: each a clear error with a code, nothing accepted, nothing half-written."""

import http.client
import json
import time

import pytest
from served import BASE, SMALL

GOOD = {**SMALL, "command": "true"}


def is_problem(answer):
    body = answer.body
    return set(body) == {"code", "message", "params", "request_id"} and (
        answer.headers["X-Request-Id"] == body["request_id"]
    )


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"command": ""}, "empty", "command"),
        ({"command": []}, "empty", "command"),
        ({"command": ["a\x00b"]}, "nul_character", "command"),
        ({"command": {"run": "x"}}, "wrong_type", "command"),
        ({"command": None}, "wrong_type", "command"),
        ({"cpu_cores": -1}, "out_of_range", "cpu_cores"),
        ({"cpu_cores": 5000}, "out_of_range", "cpu_cores"),
        ({"cpu_cores": "many"}, "wrong_type", "cpu_cores"),
        ({"memory_gb": 70_000}, "out_of_range", "memory_gb"),
        ({"gpu_count": 1.5}, "not_whole", "gpu_count"),
        ({"gpu_count": True}, "wrong_type", "gpu_count"),
        ({"gpu_count": 5000}, "out_of_range", "gpu_count"),
        ({"name": "two\nlines"}, "control_characters", "name"),
        ({"name": "x" * 201}, "too_long", "name"),
        ({"name": ""}, "empty", "name"),
        ({"working_dir": "relative/path"}, "not_absolute", "working_dir"),
        ({"env_vars": {"A B": "1"}}, "bad_name", "env_vars"),
        ({"env_vars": {"RUNYARD_JOB_ID": "1"}}, "reserved_name", "env_vars"),
        ({"max_retries": 101}, "out_of_range", "max_retries"),
        ({"priority": "urgent"}, "bad_value", "priority"),
        ({"timeout_s": 0}, "out_of_range", "timeout_s"),
        ({"grace_s": 90_000}, "out_of_range", "grace_s"),
        ({"depends_on": [{"after": "x"}]}, "wrong_type", "depends_on"),
        ({"ports": -1}, "out_of_range", "ports"),
        ({"customer_id": 7}, "bad_value", "customer_id"),
        ({"executor": "slurm"}, "bad_value", "executor"),
        ({"image": "x", "executor": "local"}, "image_needs_container", "executor"),
    ],
)
def test_fields_that_do_not_fit(served, change, code, field):
    before = served.api("GET", "/jobs").headers["X-Total-Count"]
    answer = served.api("POST", "/jobs", {**GOOD, **change})
    assert (answer.status, answer.code) == (422, "invalid_job")
    assert is_problem(answer)
    (found,) = answer.body["params"]["fields"]
    assert (found["field"], found["code"]) == (field, code)
    assert field in answer.body["message"]
    assert served.api("GET", "/jobs").headers["X-Total-Count"] == before


def test_every_wrong_field_is_named(served):
    answer = served.api("POST", "/jobs", {"cpu_cores": -1, "name": "a\nb"})
    assert [one["field"] for one in answer.body["params"]["fields"]] == [
        "command",
        "name",
        "cpu_cores",
    ]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("comand", "command"), ("gpus", "gpu_count"), ("env", "env_vars"), ("zzzzzz", None)],
)
def test_an_unknown_field_is_refused_with_the_nearest_right_name(served, name, nearest):
    answer = served.api("POST", "/jobs", {**GOOD, name: 1})
    assert (answer.status, answer.code) == (422, "unknown_field")
    assert answer.body["params"]["field"] == name
    assert answer.body["params"]["nearest"] == nearest
    assert nearest is None or nearest in answer.body["message"]


def test_everything_wrong_with_a_job_is_told_at_once(served):
    job = {"name": "x", "comand": "true", "cpu_core": 4, "priority": "urgent"}
    answer = served.api("POST", "/jobs", job)
    assert answer.code == "unknown_field"
    for words in ("Did you mean 'command'?", "Did you mean 'cpu_cores'?", "priority: must be"):
        assert words in answer.body["message"]
    assert [one["field"] for one in answer.body["params"]["besides"]] == ["priority"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"job_type": "pipeline"}, "job_type_not_available"),
        ({"job_type": "hyperparameter"}, "job_type_not_available"),
        ({"job_type": "distributed"}, "invalid_job"),
        ({"depends_on": ["job-doesnotexist"]}, "unknown_dependency"),
        ({"depends_on": ["not an id"]}, "unknown_dependency"),
        ({"depends_on": [99999999999999999999999]}, "unknown_dependency"),
        ({"dataset_ids": [7]}, "unknown_dataset"),
    ],
)
def test_what_is_well_formed_but_not_there(served, change, code):
    if change.get("depends_on") == [99999999999999999999999]:
        change = {"depends_on": ["99999999999999999999999"]}
    answer = served.api("POST", "/jobs", {**GOOD, **change})
    assert (answer.status, answer.code) == (422, code)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"command": "x\xff\xfe"}',
        b"\xff\xfe",
        b'{"command": "x", "cpu_cores": NaN}',
        b'{"command": "\\ud800"}',
        b"[" * 100_000,
        b'{"command": "x"} trailing',
    ],
)
def test_a_body_that_is_no_json(served, data):
    answer = served.api("POST", "/jobs", data=data)
    assert (answer.status, answer.code) == (400, "bad_json")
    assert is_problem(answer)


@pytest.mark.parametrize("data", [b"1", b"null", b'"x"', b"[]"])
def test_a_body_that_is_no_object(served, data):
    assert served.api("POST", "/jobs", data=data).code == "invalid_job"


def test_the_content_type_does_not_matter(served):
    head = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = served.api("POST", "/jobs", data=json.dumps(GOOD).encode(), headers=head)
    assert answer.status == 201


def test_a_body_of_10_mb_is_refused_without_being_read(served):
    body = json.dumps({**GOOD, "description": "x" * 10_000_000}).encode()
    answer = served.api("POST", "/jobs", data=body)
    assert (answer.status, answer.code) == (413, "too_large")
    assert answer.body["params"]["limit_bytes"] == 8 * 1024 * 1024
    # A client that only says how much it would send is refused before it sends.
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.putrequest("POST", f"{BASE}/jobs")
    connection.putheader("Content-Length", str(10**12))
    connection.putheader("Authorization", f"Bearer {served.key}")
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_that_does_not_say_its_size_is_counted(make_served):
    served = make_served(max_body_mb=0.01)
    pieces = (b"x" * 1000 for _ in range(30))
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    head = {"Authorization": f"Bearer {served.key}"}
    connection.request("POST", f"{BASE}/jobs", pieces, head, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["code"] == "too_large"
    connection.close()


def test_a_batch_may_be_larger(make_served):
    served = make_served(max_body_mb=0.02)
    many = [{**GOOD, "hold": True, "description": "x" * 500} for _ in range(100)]
    assert served.api("POST", "/jobs/batch", many).status == 201
    assert served.api("POST", "/jobs", {**GOOD, "description": "x" * 30_000}).code == "too_large"


def test_nothing_there_and_wrong_methods_have_the_same_shape(served):
    answer = served.call("GET", "/nowhere")
    assert (answer.status, answer.code) == (404, "not_found")
    assert is_problem(answer)
    answer = served.api("PUT", "/jobs")
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert is_problem(answer)
    assert served.api("GET", "/jobs/").status == 404


def test_a_bug_is_answered_without_its_insides(make_served, monkeypatch):
    from loguru import logger

    served = make_served()
    heard = []
    sink = logger.add(lambda message: heard.append(message.record), level="ERROR")

    def broken(_ref):
        raise RuntimeError("secret insides")

    monkeypatch.setattr(served.yard, "job", broken)
    answer = served.api("GET", "/jobs/1")
    logger.remove(sink)
    assert (answer.status, answer.code) == (500, "internal")
    assert is_problem(answer)
    assert b"insides" not in answer.data
    (record,) = heard
    assert answer.body["request_id"] in record["message"]
    assert "secret insides" in str(record["exception"].value)


def test_a_client_that_hangs_up_in_its_body_leaves_no_trace(served):
    from loguru import logger

    heard = []
    sink = logger.add(lambda message: heard.append(message.record), level="WARNING")
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.putrequest("POST", f"{BASE}/jobs")
    connection.putheader("Content-Length", "1000")
    connection.putheader("Authorization", f"Bearer {served.key}")
    connection.endheaders()
    connection.send(b"{")
    connection.close()
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline and not heard:
        assert served.call("GET", "/healthz").status == 200
    logger.remove(sink)
    assert heard == []
