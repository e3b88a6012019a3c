"""/metrics as Prometheus reads it, and the files that are shipped for Prometheus and Grafana."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from served import until

from runyard.domain.monitoring.series import Sample

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
# Base units; what else a name may end in is a plain number of things.
NOT_BASE = ("_ms", "_milliseconds", "_minutes", "_hours", "_mb", "_gb", "_kb", "_percent")
NAME = re.compile(r"\b(?:runyard|process)_[a-z0-9_]+")
SERIES = re.compile(r"_(bucket|sum|count|total|info)$")


def scraped(served, **headers):
    answer = served.call("GET", "/metrics", key="", headers=headers)
    assert answer.status == 200
    return answer.data.decode()


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(text, name, **labels):
    found = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


def busy(served):
    """Something of everything: an end, a retry, a cancel, a wait."""
    done = served.running()
    served.finish(done)
    again = served.running(max_retries=3)
    served.finish(again, code=1)
    gone = served.running()
    served.api("POST", f"/jobs/{gone}/cancel", wait=10)
    served.yard.runtime.collecting.measure()
    return served.running()


def test_every_name_is_well_formed(served):
    """R24. What promtool would say, said by the library's parser and a few rules."""
    busy(served)
    text = scraped(served)
    found = families(text)
    assert len(found) > 30
    for name, family in found.items():
        assert family.documentation, name
        assert not name.endswith(NOT_BASE), name
        assert family.type in ("gauge", "counter", "histogram"), f"{name} is {family.type}"
        for sample in family.samples:
            if family.type == "counter":
                assert sample.name.endswith("_total"), sample.name
            assert not {"le", "quantile"} & sample.labels.keys() or family.type == "histogram"
    assert text.count("# TYPE") == len(set(re.findall(r"# TYPE (\S+)", text)))


def test_promtool_finds_nothing(served):
    """R24."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    busy(served)
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=scraped(served),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_histograms_add_up(served):
    busy(served)
    found = families(scraped(served))
    for name, family in found.items():
        if family.type != "histogram":
            continue
        series = {}
        for sample in family.samples:
            labels = frozenset((k, v) for k, v in sample.labels.items() if k != "le")
            series.setdefault(labels, {"buckets": []})
            if sample.name.endswith("_bucket"):
                series[labels]["buckets"].append((float(sample.labels["le"]), sample.value))
            else:
                series[labels][sample.name.removeprefix(name)] = sample.value
        for one in series.values():
            bounds, counts = zip(*one["buckets"], strict=True)
            assert list(bounds) == sorted(bounds)
            assert bounds[-1] == float("inf")
            assert list(counts) == sorted(counts)
            assert counts[-1] == one["_count"]
            assert one["_sum"] >= 0


def test_what_was_done_is_counted(make_served):
    served = make_served()
    busy(served)
    text = scraped(served)
    assert value(text, "runyard_attempts_ended_total", end="completed") == 1
    assert value(text, "runyard_attempts_ended_total", end="failed") == 1
    assert value(text, "runyard_attempts_ended_total", end="cancelled") == 1
    assert value(text, "runyard_job_retries_total") == 1
    assert value(text, "runyard_attempts_started_total", executor="local") == 4
    assert value(text, "runyard_cancel_seconds_count") == 1
    assert value(text, "runyard_queue_wait_seconds_count") == 4
    assert value(text, "runyard_jobs", status="running") == 1
    assert value(text, "runyard_jobs", status="retrying") == 1
    assert value(text, "runyard_queue_depth") == 1
    assert value(text, "runyard_attempts_running") == 1
    assert value(text, "runyard_scheduler_pass_seconds_count") >= 4
    submits = {"method": "POST", "route": "/api/v1/training/jobs", "status": "201"}
    assert value(text, "runyard_http_requests_total", **submits) == 4


def test_the_first_in_the_queue_and_a_paused_one(make_served):
    served = make_served()
    assert value(scraped(served), "runyard_dispatching") == 1
    served.api("POST", "/system/stop-queue")
    served.submit()
    text = scraped(served)
    assert value(text, "runyard_dispatching") == 0
    assert 0 <= value(text, "runyard_queue_oldest_wait_seconds") < 60


def test_addresses_that_clients_make_up_are_no_labels(make_served):
    served = make_served()
    job = served.running()
    for number in range(30):
        served.call("GET", f"/made/up/{number}")
        served.api("GET", f"/jobs/job-{number:012d}")
        served.call("BREW", "/healthz")
    served.api("GET", f"/jobs/{job}/logs")
    text = scraped(served)
    routes = {sample.labels["route"] for sample in families(text)["runyard_http_requests"].samples}
    assert "/api/v1/training/jobs/{ref}" in routes
    assert "/api/v1/training/jobs/{ref}/logs" in routes
    assert "unknown" in routes
    assert not [route for route in routes if "made" in route or "job-0" in route]
    assert "BREW" not in text


def test_jobs_are_named_only_when_that_was_asked_for(make_served):
    plain, naming = make_served(), make_served(prometheus_jobs=1)
    for served in (plain, naming):
        jobs = [served.running(), served.running()]
        board = served.parts.board
        for job in jobs:
            board.record(served.job(job)["id"], 1, [Sample("loss", time.time(), 2.5)])
    assert "job-" not in scraped(plain)
    found = families(scraped(naming))["runyard_job_loss"].samples
    assert [sample.value for sample in found] == [2.5]


def test_the_format_that_is_asked_for(served):
    text = scraped(served, Accept="application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")


def test_it_costs_nobody_their_rest(make_served):
    """A Prometheus that asks all the time is nobody who looks."""
    served = make_served()
    until(lambda: not served.parts.board.watchers.anybody(), 30)
    scraped(served)
    assert not served.parts.board.watchers.anybody()


# the files that are shipped


def queries():
    """(where, expression) of all that is asked of Prometheus."""
    dashboard = json.loads((DEPLOY / "grafana/runyard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield f"panel {panel['title']}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        yield f"variable {variable['name']}", variable.get("definition", "")
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield f"rule {rule['alert']}", rule["expr"]


def test_what_is_asked_of_prometheus_is_there(make_served):
    """R24."""
    served = make_served(prometheus_jobs=10)
    busy(served)
    known = families(scraped(served))
    asked = [(where, name) for where, query in queries() for name in NAME.findall(query)]
    assert len(asked) > 50
    missing = [
        (where, name)
        for where, name in asked
        if name not in known and SERIES.sub("", name) not in known
    ]
    assert missing == []


def test_everything_told_is_shown_somewhere(make_served):
    """A figure nobody asks for is a figure nobody needs."""
    served = make_served(prometheus_jobs=10)
    busy(served)
    asked = " ".join(query for _, query in queries())
    told = [name for name in families(scraped(served)) if name.startswith("runyard_")]
    elsewhere = {
        "runyard_max_concurrent",
        "runyard_gate_load_ratio",
        "runyard_node_memory_used_bytes",
        "runyard_job_cpu_cores",
    }
    assert [name for name in told if name not in asked and name not in elsewhere] == []


def test_panels_do_not_overlap():
    dashboard = json.loads((DEPLOY / "grafana/runyard.json").read_text())
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells), panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_prometheus_accepts_its_files():
    """R24."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    done = subprocess.run(
        ["promtool", "check", "config", str(DEPLOY / "prometheus/scrape.yml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
