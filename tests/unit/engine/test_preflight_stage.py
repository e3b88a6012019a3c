"""Preflight in the engine: which jobs get one, when it runs, and what its end means."""

import json

import pytest

from engine_yard import ANN
from runyard.domain import preparation
from runyard.domain.job import JobSpec
from runyard.domain.resources import Request
from runyard.domain.states import Stage
from scripted_machine import ScriptedMachine
from yards import until

MODEL = "http://127.0.0.1:9/model.bin"
MISSING = {
    "check": "imports",
    "verdict": "fail",
    "code": "module_missing",
    "params": {"name": "torch", "path": "/w/train.py", "line": 3},
}
DOUBT = {"check": "disk", "verdict": "warn", "code": "disk_low", "params": {}}


@pytest.fixture
def gpu_engine(make_engine):
    return make_engine(machine=ScriptedMachine(gpu_count=2), preflight="auto")


def preparation_of(yard, ref, number=1):
    name = f"{ref}.p{number}"
    until(lambda: name in yard.executor.launches, 20, lambda: yard.reason(ref))
    return name


def report_of(yard, name):
    return yard.settings.data_dir / "preflight" / f"{name}.report.json"


def check_ends(yard, ref, *checks, number=1):
    """The program's end, as it would be with these findings."""
    name = preparation_of(yard, ref, number)
    failed = any(one["verdict"] == "fail" for one in checks)
    verdict = "fail" if failed else "warn" if checks else "pass"
    report = {"verdict": verdict, "seconds": 0.1, "checks": list(checks)}
    report_of(yard, name).write_text(json.dumps(report))
    yard.executor.finish(name, 20 if failed else 0)
    return name


def spec(**fields):
    gpus = fields.pop("gpus", 0)
    return JobSpec("x", "true", request=Request(1000, 1024, gpu_milli=1000 * gpus), **fields)


@pytest.mark.parametrize(
    ("asked", "by_default", "fit", "checked"),
    [
        (spec(), True, True, False),
        (spec(gpus=1), True, True, True),
        (spec(gpus=1), True, False, False),
        (spec(gpus=1), False, True, False),
        (spec(gpus=1, preflight=False), True, True, False),
        (spec(prefetch=(MODEL,)), True, True, True),
        (spec(prefetch=(MODEL,), preflight=False), True, True, False),
        (spec(preflight=True), True, True, True),
        (spec(preflight=True), False, True, True),
        (spec(preflight=True, image="busybox"), True, True, False),
        (spec(preflight=True, executor="ray"), True, True, False),
    ],
)
def test_which_jobs_are_checked(asked, by_default, fit, checked):
    assert preparation.is_checked(asked, by_default=by_default, gpus_fit=fit) is checked


def test_stages_in_order():
    assert preparation.stages(spec()) == ()
    both = spec(preflight=True, prefetch=(MODEL,))
    assert preparation.stages(both) == (Stage.PREFLIGHT, Stage.PREFETCH)
    assert preparation.missing(both, [], 0.0) is Stage.PREFLIGHT


def test_a_job_with_a_gpu_is_checked_and_starts(gpu_engine):
    ref = gpu_engine.submit(gpu_count=1)
    preparation_of(gpu_engine, ref)
    job = gpu_engine.job(ref)
    assert (job.status.value, job.stage) == ("pending", Stage.PREFLIGHT)
    assert gpu_engine.reason(ref)[0] == "preparing"
    name = check_ends(gpu_engine, ref)
    gpu_engine.wait(ref, "running")
    assert gpu_engine.yard.job(ref).preflight["verdict"] == "pass"
    assert gpu_engine.executor.launches[name].gpu_uuids == ()
    assert list((gpu_engine.settings.data_dir / "preflight").iterdir()) == []


def test_a_job_without_a_gpu_starts_at_once(gpu_engine):
    ref = gpu_engine.running()
    assert f"{ref}.p1" not in gpu_engine.executor.launches


def test_it_is_checked_while_it_waits_for_the_gpu(gpu_engine):
    first = gpu_engine.submit(gpu_count=2)
    check_ends(gpu_engine, first)
    gpu_engine.wait(first, "running")
    second = gpu_engine.submit(gpu_count=2)
    check_ends(gpu_engine, second)
    gpu_engine.wait_reason(second, "not_enough")
    gpu_engine.finish(first)
    gpu_engine.wait(second, "running")


def test_what_was_found_fails_the_job_at_once(gpu_engine):
    """R39: no attempt, no retry; the reason says what to do."""
    ref = gpu_engine.submit(gpu_count=1, max_retries=3)
    check_ends(gpu_engine, ref, DOUBT, MISSING)
    job = gpu_engine.wait(ref, "failed")
    assert job.reason.code == "preparation_failed"
    assert job.reason.params["stage"] == "preflight"
    assert job.reason.params["code"] == "module_missing"
    assert job.reason.params["params"]["name"] == "torch"
    assert "report" not in job.reason.params
    assert (job.retry_count, gpu_engine.attempts(ref)) == (0, [])
    shown = gpu_engine.yard.job(ref).preflight
    assert [one["code"] for one in shown["checks"]] == ["disk_low", "module_missing"]


def test_a_retry_checks_again(gpu_engine):
    ref = gpu_engine.submit(gpu_count=1)
    check_ends(gpu_engine, ref, MISSING)
    gpu_engine.wait(ref, "failed")
    gpu_engine.yard.retry(ref, ANN)
    check_ends(gpu_engine, ref, number=2)
    gpu_engine.wait(ref, "running")


def test_a_doubt_is_shown_and_the_job_starts(gpu_engine):
    ref = gpu_engine.submit(gpu_count=1)
    check_ends(gpu_engine, ref, DOUBT)
    gpu_engine.wait(ref, "running")
    assert gpu_engine.yard.job(ref).preflight["checks"] == [DOUBT]


def test_a_check_that_somebody_killed_is_made_again(gpu_engine):
    ref = gpu_engine.submit(gpu_count=1)
    gpu_engine.executor.finish(preparation_of(gpu_engine, ref), None, signal=9, cause="signal")
    check_ends(gpu_engine, ref, number=2)
    gpu_engine.wait(ref, "running")


def test_then_what_it_needs_is_fetched(gpu_engine):
    ref = gpu_engine.submit(gpu_count=1, prefetch=[MODEL])
    check_ends(gpu_engine, ref)
    name = preparation_of(gpu_engine, ref, 2)
    assert gpu_engine.job(ref).stage is Stage.PREFETCH
    assert gpu_engine.reason(ref)[1]["stage"] == "prefetch"
    gpu_engine.executor.finish(name)
    gpu_engine.wait(ref, "running")
    assert gpu_engine.events(ref).count("preparation_ended") == 2


def test_checks_do_not_wait_for_downloads(make_engine):
    machine = ScriptedMachine(gpu_count=1)
    engine = make_engine(machine=machine, preflight="auto", max_preparations=1)
    slow = engine.submit(prefetch=[MODEL], preflight=False)
    preparation_of(engine, slow)
    ref = engine.submit(gpu_count=1)
    check_ends(engine, ref)
    engine.wait(ref, "running")


def test_cancel_in_preflight(gpu_engine):
    """R1: cancelling until the check is proven gone, then cancelled, with a receipt."""
    gpu_engine.executor.stubborn = True
    ref = gpu_engine.submit(gpu_count=1)
    name = preparation_of(gpu_engine, ref)
    assert gpu_engine.yard.cancel(ref, ANN).status.value == "cancelling"
    code, params = gpu_engine.reason(ref)
    assert (code, params["stage"]) == ("waiting_for_preparation", "preflight")
    gpu_engine.executor.finish(name, None, signal=15, cause="cancelled")
    assert gpu_engine.wait(ref, "cancelled").reason.code == "user_cancelled"
    assert gpu_engine.yard.receipt(ref)["stage"] == "preflight"


def test_what_can_never_have_its_gpus_says_so_instead(gpu_engine):
    ref = gpu_engine.submit(gpu_count=8)
    gpu_engine.wait_reason(ref, "never_fits")
