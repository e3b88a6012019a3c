"""What the web page asks beside the plain resources: rows, counts, previews, stories, files."""

import os

import pytest
import yaml
from served import SMALL, until

from runyard.domain.monitoring.series import Sample
from runyard.wire import answers as shapes
from runyard.wire import page_answers as pages
from runyard.wire import sessions
from runyard.wire.queue_answers import QueueAnswer

AT = 1_790_000_000.0


def _record(served, job, samples):
    view = served.yard.job(job).job
    served.yard.runtime.metric_history.put(view.id, view.attempt_number, samples)
    served.yard.runtime.metric_history.flush()


def _rows(served, **query):
    answer = served.api("GET", "/jobs", **query)
    assert answer.status == 200, answer.data
    return answer.body


# rows of lists


def test_a_row_has_the_main_metric_with_a_small_curve(served):
    """R37: the jobs list shows the main metric, best and last, with a sparkline."""
    job = served.running(name="curve")
    falling = [Sample("loss", AT + n, 1000.0 - n, n) for n in range(1000)]
    _record(served, job, [*falling, Sample("lr", AT, 0.1, 1), Sample("gpu.util", AT, 9.0)])
    served.finish(job)
    [row] = _rows(served, q="curve", curves="true")
    found = row["main_metric"]
    assert (found["name"], found["direction"]) == ("loss", "min")
    assert (found["last"], found["best"]) == (1.0, 1.0)
    assert 2 <= len(found["points"]) <= 64
    assert found["points"][0] == 1000.0
    assert found["points"][-1] == 1.0
    assert _rows(served, q="curve")[0]["main_metric"] is None
    assert served.job(job)["main_metric"]["name"] == "loss"


def test_higher_can_be_better_and_nan_is_never_best(served):
    job = served.running(name="accurate")
    values = [0.25, float("nan"), 0.75, 0.5]
    _record(served, job, [Sample("eval_acc", AT + n, v, n) for n, v in enumerate(values)])
    served.finish(job)
    [row] = _rows(served, q="accurate", curves="true")
    found = row["main_metric"]
    assert (found["name"], found["direction"], found["best"]) == ("eval_acc", "max", 0.75)
    assert "NaN" in found["points"]
    assert found["last"] == 0.5


def test_the_row_of_a_running_job_has_its_newest_value(served):
    job = served.running(name="fresh")
    number = served.yard.job(job).job.id
    served.yard.board.record(number, 1, [Sample("loss", AT, 3.0, 1)])
    assert _rows(served, q="fresh", curves="true")[0]["main_metric"]["last"] == 3.0
    served.yard.board.record(number, 1, [Sample("loss", AT + 1, 2.0, 2)])
    found = _rows(served, q="fresh", curves="true")[0]["main_metric"]
    assert (found["last"], found["best"]) == (2.0, 2.0)
    served.yard.board.forget(number)


def test_a_row_says_which_attempt_of_how_many(served):
    job = served.submit(hold=True, max_retries=3)
    row = served.job(job)
    assert (row["attempt_number"], row["attempt_limit"]) == (0, 4)


def test_lists_can_be_sorted_and_paged(make_served):
    served = make_served()
    for name in ("b", "c", "a"):
        served.submit(hold=True, name=name)
    assert [row["name"] for row in _rows(served, sort="name")] == ["a", "b", "c"]
    first = served.api("GET", "/jobs", sort="-name", limit=2)
    assert [row["name"] for row in first.body] == ["c", "b"]
    assert first.headers["X-Total-Count"] == "3"
    rest = served.call("GET", first.headers["Link"].split(">")[0][1:])
    assert [row["name"] for row in rest.body] == ["a"]
    assert served.api("GET", "/jobs", sort="colour").status == 422


def test_counts_for_the_chips(make_served):
    served = make_served()
    served.submit(hold=True, key=served.user)
    done = served.running(key=served.user)
    served.finish(done)
    served.submit(hold=True, key=served.other)
    found = served.api("GET", "/jobs/counts", owner="ann").body
    assert found["total"] == 2
    assert {name for name, many in found["counts"].items() if many} == {"pending", "completed"}
    assert set(found["counts"]) >= {"running", "failed", "cancelling"}
    assert served.api("GET", "/jobs/counts").body["total"] == 3


# previews


def preview(served, body, **options):
    answer = served.api("POST", "/jobs/preview", body, **options)
    assert answer.status == 200, answer.data
    pages.PreviewAnswer.model_validate(answer.body)
    return answer.body


def test_a_job_that_would_start_now(served):
    before = served.api("GET", "/jobs/counts").body["total"]
    found = preview(served, {**SMALL, "command": ["python", "train it.py"], "name": "t"})
    assert found["valid"]
    assert found["starts_now"]
    assert found["placement"]["node_id"]
    assert found["wait"] is None
    assert found["request"]["cpu_cores"] == 0.01
    assert found["cli"].endswith("-- python 'train it.py'")
    assert yaml.safe_load(found["yaml"]) == found["job"]
    assert served.api("GET", "/jobs/counts").body["total"] == before


def test_a_job_that_would_wait_says_behind_whom(make_served):
    """R37: live "would start now / would wait behind ..."."""
    served = make_served(max_concurrent=1)
    running = served.running(timeout_s=600)
    waiting = served.submit()
    first = preview(served, {**SMALL, "command": "true", "priority": "high"})
    last = preview(served, {**SMALL, "command": "true"})
    assert not first["starts_now"]
    assert first["wait"]["code"] == last["wait"]["code"] == "max_concurrent"
    assert (first["wait"]["position"], last["wait"]["position"]) == (1, 2)
    assert first["wait"]["blockers"] == [running]
    assert last["wait"]["blockers"] == [waiting, running]
    assert first["wait"]["est_start_high"] > first["wait"]["est_start_low"]
    real = served.job(served.submit())["wait"]
    assert (real["code"], real["position"]) == (last["wait"]["code"], last["wait"]["position"])


def test_what_can_never_fit_or_may_not_start_is_said(served):
    huge = preview(served, {**SMALL, "command": "true", "gpu_count": 64})
    assert huge["wait"]["code"] == "never_fits"
    assert huge["warnings"][0]["code"] == "never_fits"
    held = preview(served, {**SMALL, "command": "true", "hold": True})
    assert held["wait"]["code"] == "held"
    parent = served.submit(hold=True)
    child = preview(served, {**SMALL, "command": "true", "depends_on": [parent]})
    assert child["wait"]["code"] == "dependency"
    assert child["wait"]["blockers"] == [parent]


def test_a_paused_queue_is_said(make_served):
    served = make_served()
    served.api("POST", "/system/stop-queue")
    found = preview(served, {**SMALL, "command": "true"})
    assert not found["starts_now"]
    assert found["wait"]["code"] == served.job(served.submit())["wait"]["code"]


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"command": "true", "gpu_count": -1}, "gpu_count", None),
        ({"comand": "true"}, "comand", "unknown_field"),
        ({}, "command", None),
        ([], "job", "wrong_type"),
        ({"command": "true", "depends_on": ["job-nobody0000"]}, "depends_on", None),
        ({"command": "true", "dataset_ids": [99]}, "dataset_ids", "unknown_dataset"),
        ({"command": "true", "job_type": "pipeline"}, "job_type", "job_type_not_available"),
    ],
)
def test_what_is_wrong_is_an_answer(served, body, field, code):
    found = preview(served, body)
    assert not found["valid"]
    assert found["problems"][0]["field"] == field
    assert code in (None, found["problems"][0]["code"])
    assert found["problems"][0]["message"]
    assert found["cli"] is None


def test_a_job_file_can_be_previewed_as_it_is_written(served):
    text = (
        "name: from-file\ncommand: python x.py\ncpu_cores: 0.01\nmemory_gb: 0.01\ngpu_count: 0\n"
    )
    kind = {"Content-Type": "application/yaml"}

    def ask(data):
        answer = served.api("POST", "/jobs/preview", data=data, headers=kind)
        assert answer.status == 200, answer.data
        return answer.body

    found = ask(text.encode())
    assert found["valid"]
    assert found["job"]["name"] == "from-file"
    broken = ask(b"name: [1\ncommand: x")
    assert broken["problems"][0]["code"] == "bad_yaml"
    assert "line" in broken["problems"][0]["message"]
    bomb = b"a: &a [1,1]\nb: &b [*a,*a]\ncommand: true"
    assert ask(bomb)["problems"][0]["code"] == "bad_yaml"
    assert ask(b"!!python/object/apply:os.system [id]")["problems"][0]["code"] == "bad_yaml"
    assert ask(b"\xff")["problems"][0]["code"] == "bad_yaml"
    assert ask(b"")["problems"][0]["field"] == "command"


def test_what_has_no_flag_needs_the_file(served):
    body = {**SMALL, "command": "true", "checkpoint": {"keep": 2}}
    assert preview(served, body)["cli"] == "runyard submit -f job.yaml"


def test_only_those_who_may_submit_may_preview(served):
    answer = served.api("POST", "/jobs/preview", {"command": "true"}, key=served.viewer)
    assert answer.code == "forbidden"


# one job


def test_the_story_tells_cause_action_and_the_proving_line(served):
    """R37: story timeline, with the proving log line."""
    job = served.running(max_retries=0)
    served.write(job, b"step 1\nTraceback (most recent call last):\n")
    served.write(job, b"ModuleNotFoundError: No module named 'nowhere'\n")
    served.finish(job, code=1)
    told = served.api("GET", f"/jobs/{job}/story").body
    for one in told:
        pages.ChapterAnswer.model_validate(one)
    assert [one["code"] for one in told][:3] == ["job_submitted", "job_scheduled", "job_started"]
    last = told[-1]
    assert (last["code"], last["attempt"], last["exit_code"]) == ("job_failed", 1, 1)
    assert last["cause"]["code"]
    assert last["action"]["code"] == "give_up"
    line = last["lines"][0]
    assert (line["attempt"], line["rank"], line["number"]) == (1, 0, 3)
    logs = served.api("GET", f"/jobs/{job}/logs", **{"from": 2, "limit": 1}).body["logs"]
    assert logs == [last["lines"][0]["text"]]
    explained = served.api("GET", f"/jobs/{job}/explain").body
    pages.ExplainAnswer.model_validate(explained)
    shapes.JobAnswer.model_validate(served.job(job))


def test_the_configuration_can_be_submitted_again(served):
    fields = {
        "name": "again",
        "params": {"lr": 0.1},
        "env_vars": {"API_TOKEN": "hush", "MODE": "fast"},
        "labels": {"team": "a"},
        "hold": True,
        "timeout_s": 90,
    }
    job = served.submit(["python", "x.py"], **fields)
    found = served.api("GET", f"/jobs/{job}/config").body
    pages.ConfigAnswer.model_validate(found)
    assert found["submitted"] == found["effective"]
    assert found["submitted"]["params"] == {"lr": 0.1}
    assert "hush" not in str(found)
    assert "--time 90s" in found["cli"]
    body = yaml.safe_load(found["yaml"])
    assert preview(served, body)["valid"]


def test_a_file_of_the_output_can_be_taken_whole_or_in_parts(served):
    job = served.submit(hold=True)
    folder = served.settings.data_dir / "outputs" / job
    (folder / "deep").mkdir(parents=True)
    data = bytes(range(256)) * 4096
    (folder / "deep" / "модель 1.bin").write_bytes(data)
    (folder / "empty").write_bytes(b"")
    listed = served.api("GET", f"/jobs/{job}/files").body["files"]
    assert [one["path"] for one in listed] == ["deep/модель 1.bin", "empty"]
    path = f"/jobs/{job}/files/deep/%D0%BC%D0%BE%D0%B4%D0%B5%D0%BB%D1%8C%201.bin"
    whole = served.api("GET", path)
    assert (whole.status, whole.data) == (200, data)
    assert whole.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in whole.headers["Content-Security-Policy"]
    for asked, first, last in (("0-9", 0, 9), ("1000-", 1000, None), ("-5", len(data) - 5, None)):
        part = served.api("GET", path, headers={"Range": f"bytes={asked}"})
        assert part.status == 206, asked
        assert part.data == data[first : None if last is None else last + 1]
    assert served.api("GET", path, headers={"Range": "bytes=99999999-"}).status == 416
    assert served.api("GET", path, headers={"Range": "bytes=9-2"}).status == 416
    assert served.api("GET", f"/jobs/{job}/files/empty").data == b""
    assert served.api("GET", path, key="").status == 401


def test_no_file_outside_of_the_output_can_be_taken(served):
    job = served.submit(hold=True)
    folder = served.settings.data_dir / "outputs" / job
    folder.mkdir(parents=True)
    secret = served.settings.data_dir / "secret.txt"
    secret.write_text("hush")
    (folder / "link").symlink_to(secret)
    (folder / "way").symlink_to(served.settings.data_dir)
    os.mkfifo(folder / "pipe")
    for path in (
        *("link", "way/secret.txt", "../../secret.txt", "%2e%2e/%2e%2e/secret.txt", "pipe"),
        *(f"{secret}", "//etc/passwd", "", ".", "nothing", "a%00b", "..%2f..%2fsecret.txt"),
    ):
        answer = served.api("GET", f"/jobs/{job}/files/{path}")
        assert answer.status in (404, 405), path
        assert b"hush" not in answer.data


# queue, machines, alerts, about


def test_capacity_and_waits(make_served):
    served = make_served()
    served.running(cpu_cores=0.5)
    found = served.api("GET", "/queue/capacity").body
    pages.CapacityAnswer.model_validate(found)
    assert (found["slots"], found["slots_used"]) == (4, 1)
    [node] = found["nodes"]
    assert node["cpu_cores_used"] == 0.5
    assert node["attempts"] == 1
    history = served.api("GET", "/queue/history").body
    pages.WaitHistoryAnswer.model_validate(history)
    assert len(history["waits"]) == 1
    assert history["median_s"] >= 0
    queue = served.api("GET", "/queue/status").body
    QueueAnswer.model_validate(queue)


def test_about_tells_nothing_secret(make_served):
    served = make_served()
    found = served.api("GET", "/system/about", key=served.viewer).body
    pages.AboutAnswer.model_validate(found)
    assert found["database"]["kind"] == "sqlite"
    assert found["database"]["size_bytes"] > 0
    assert found["settings"]["keep_days"] == 30
    assert str(served.settings.data_dir) not in str(found)
    assert "database_url" not in found["settings"]


def test_the_series_of_an_alert(make_served):
    served = make_served()
    job = served.running()
    view = served.yard.job(job).job
    now = served.parts.clock()
    samples = [Sample("loss", now - 60 + n, float("nan"), n) for n in range(60)]
    served.yard.board.record(view.id, 1, samples)
    served.yard.runtime.metric_history.flush()
    alerts = until(
        lambda: [one for one in served.api("GET", "/alerts").body if one["job_id"] == job],
        40,
        "the loss is not a number",
    )
    found = served.api("GET", f"/alerts/{alerts[0]['id']}/series").body["series"]
    assert len(found["loss"]["values"]) >= 10
    assert set(found) == set(alerts[0]["evidence"]["series"])
    assert served.api("GET", "/alerts/99999/series").status == 404
    [told] = [
        one
        for one in served.api("GET", f"/jobs/{job}/story").body
        if one["code"] == "alert_opened" and one["params"]["alert"] == alerts[0]["id"]
    ]
    assert told["params"]["found"] == alerts[0]["params"]


def test_sessions_are_as_described(served):
    answer = served.api("POST", "/session", {"key": served.user}, key="").body
    sessions.SessionAnswer.model_validate(answer)
