"""Preparation of a job by the engine: begun while it waits, recorded, tried again, cancelled."""

import json

import pytest

from engine_yard import ANN
from runyard.domain import errors
from runyard.engine.retention import Retention
from yards import until

MODEL = "http://127.0.0.1:9/model.bin"


def preparation_of(yard, ref, number=1):
    """Until it was handed over."""
    name = f"{ref}.p{number}"
    until(lambda: name in yard.executor.launches, 20, lambda: yard.reason(ref))
    return name


def tell_outcome(yard, ref, name, **outcome):
    folder = yard.settings.data_dir / "prefetch" / ref
    told = {"state": "ended", "bytes_done": 7, "bytes_total": 9, "outcome": outcome}
    (folder / f"{name}.progress.json").write_text(json.dumps(told))


def test_a_job_waits_for_its_preparation_and_then_starts(engine):
    ref = engine.submit(prefetch=[MODEL])
    name = preparation_of(engine, ref)
    code, params = engine.reason(ref)
    assert code == "preparing"
    assert params["stage"] == "prefetch"
    assert engine.job(ref).stage.value == "prefetch"
    assert engine.status(ref) == "pending"
    engine.executor.finish(name)
    engine.wait(ref, "running")
    launch = engine.executor.launches[engine.job(ref).attempt_id()]
    assert launch.env["RUNYARD_PREFETCH_DIR"].endswith(f"prefetch/{ref}/files")
    events = engine.events(ref)
    assert events.index("preparation_started") < events.index("preparation_ended")
    assert events.index("preparation_ended") < events.index("job_scheduled")


def test_it_holds_no_place_while_it_is_prepared(make_engine):
    engine = make_engine(max_concurrent=1)
    ref = engine.submit(prefetch=[MODEL])
    preparation_of(engine, ref)
    other = engine.running()
    assert engine.status(ref) == "pending"
    engine.finish(other)


def test_cancel_in_a_download(engine):
    """R1, R4: the job is cancelling until the download is proven gone, then cancelled."""
    engine.executor.stubborn = True
    ref = engine.submit(prefetch=[MODEL])
    name = preparation_of(engine, ref)
    assert engine.yard.cancel(ref, ANN).status.value == "cancelling"
    assert [stop.grace_s for stop in engine.executor.stops[name]] == [1.0]
    assert engine.yard.cancel(ref, ANN, force=True).status.value == "cancelling"
    assert [stop.grace_s for stop in engine.executor.stops[name]] == [1.0, 0.0]
    engine.executor.finish(name, None, signal=15, cause="cancelled")
    job = engine.wait(ref, "cancelled")
    assert job.reason.code == "user_cancelled"
    receipt = engine.yard.receipt(ref)
    assert receipt["stage"] == "prefetch"
    assert receipt["requested_by"] == "ann"


def test_exit_0_after_a_cancel_is_cancelled(engine):
    engine.executor.stubborn = True
    ref = engine.submit(prefetch=[MODEL])
    name = preparation_of(engine, ref)
    engine.yard.cancel(ref, ANN)
    engine.executor.finish(name)
    engine.wait(ref, "cancelled")


def test_what_cannot_be_fetched_fails_the_job_at_once(engine):
    ref = engine.submit(prefetch=[MODEL], max_retries=3)
    name = preparation_of(engine, ref)
    tell_outcome(engine, ref, name, code="not_found", uri=MODEL)
    engine.executor.finish(name, 10)
    job = engine.wait(ref, "failed")
    assert job.reason.code == "preparation_failed"
    assert job.reason.params["code"] == "not_found"
    assert job.retry_count == 0
    assert engine.attempts(ref) == []


def test_trouble_that_may_pass_is_tried_again_later(engine):
    ref = engine.submit(prefetch=[MODEL], retry_delays=[50])
    name = preparation_of(engine, ref)
    tell_outcome(engine, ref, name, code="network", uri=MODEL)
    engine.executor.finish(name, 12)
    until(lambda: "until" in engine.reason(ref)[1])
    assert f"{ref}.p2" not in engine.executor.launches
    engine.clock.ahead += 60
    engine.yard.runtime.prepare()
    second = preparation_of(engine, ref, 2)
    tell_outcome(engine, ref, second, code="network", uri=MODEL)
    engine.executor.finish(second, 12)
    assert engine.wait(ref, "failed").reason.params["code"] == "network"
    engine.clock.ahead += 1
    engine.yard.retry(ref, ANN)
    engine.executor.finish(preparation_of(engine, ref, 3))
    engine.wait(ref, "running")


def test_a_lost_download_is_begun_again(engine):
    ref = engine.submit(prefetch=[MODEL])
    engine.executor.finish(preparation_of(engine, ref), None, cause="supervisor_lost")
    engine.executor.finish(preparation_of(engine, ref, 2))
    engine.wait(ref, "running")


def test_a_restarted_server_adopts_the_download(engine):
    """R42: what ended meanwhile is recorded, what lives goes on."""
    ended, living = engine.submit(prefetch=[MODEL]), engine.submit(prefetch=[MODEL])
    first, second = preparation_of(engine, ended), preparation_of(engine, living)
    engine.close()
    engine.executor.finish(first)
    engine.restart()
    engine.wait(ended, "running")
    assert engine.status(living) == "pending"
    engine.executor.finish(second)
    engine.wait(living, "running")


def test_a_shutdown_ends_the_download_and_keeps_the_job_waiting(engine):
    ref = engine.submit(prefetch=[MODEL])
    preparation_of(engine, ref)
    assert engine.yard.runtime.end_all()
    assert engine.status(ref) == "pending"
    assert engine.executor.running() == []
    engine.restart()
    engine.executor.finish(preparation_of(engine, ref, 2))
    engine.wait(ref, "running")


def test_held_and_dependent_jobs_fetch_when_they_may_run(engine):
    first = engine.running()
    held = engine.submit(prefetch=[MODEL], hold=True)
    dependent = engine.submit(prefetch=[MODEL], depends_on=[first])
    assert engine.reason(held)[0] == "held"
    assert engine.reason(dependent)[0] == "dependency"
    assert len(engine.executor.launches) == 1
    engine.yard.release(held, ANN)
    engine.executor.finish(preparation_of(engine, held))
    engine.wait(held, "running")
    engine.finish(first)
    engine.executor.finish(preparation_of(engine, dependent))
    engine.wait(dependent, "running")


def test_delete_forgets_the_links(engine):
    ref = engine.submit(prefetch=[MODEL])
    name = preparation_of(engine, ref)
    engine.executor.finish(name)
    engine.wait(ref, "running")
    engine.finish(ref)
    engine.wait(ref, "completed")
    folder = engine.settings.data_dir / "prefetch" / ref
    engine.yard.delete(ref, ANN)
    assert not folder.exists()
    with pytest.raises(errors.JobNotFound):
        engine.job(ref)


def test_a_broken_dependency_ends_the_download_before_the_job_is_cancelled(engine):
    """R1: cancelling until the download is proven gone; then it says what it depended on."""
    engine.executor.stubborn = True
    first = engine.running()
    dependent = engine.submit(prefetch=[MODEL], depends_on=[first], lease_s=600)
    engine.finish(first)
    engine.wait(first, "completed")
    engine.yard.runtime.prepare()
    name = preparation_of(engine, dependent)
    engine.yard.hold(dependent, ANN)
    engine.yard.release(dependent, ANN)
    assert engine.reason(dependent)[1]["preparation"] == name
    engine.yard.retry(first, ANN)
    engine.wait(first, "running")
    engine.yard.cancel(first, ANN)
    engine.finish(first)
    engine.wait(dependent, "cancelling")
    engine.yard.runtime.prepare()
    until(lambda: engine.executor.stops.get(name))
    engine.executor.finish(name, None, signal=15, cause="cancelled")
    assert engine.wait(dependent, "cancelled").reason.code == "dependency_failed"


def test_a_retry_asks_for_the_files_again(engine):
    ref = engine.submit(prefetch=[MODEL])
    engine.executor.finish(preparation_of(engine, ref))
    engine.wait(ref, "running")
    links = engine.settings.data_dir / "prefetch" / ref
    assert links.exists()
    engine.finish(ref)
    engine.wait(ref, "completed")
    until(lambda: not links.exists(), 20, "the links keep the cache in use")
    engine.yard.retry(ref, ANN)
    engine.executor.finish(preparation_of(engine, ref, 2))
    engine.wait(ref, "running")


def test_links_of_jobs_that_ended_unheard_go_with_retention(engine):
    ref = engine.submit(prefetch=[MODEL])
    engine.executor.finish(preparation_of(engine, ref))
    engine.wait(ref, "running")
    living, ended, unknown = (
        engine.settings.data_dir / "prefetch" / name for name in (ref, "job-ended", "job-unknown")
    )
    done = engine.running()
    engine.finish(done)
    engine.wait(done, "completed")
    ended = ended.with_name(done)
    for folder in (ended, unknown):
        folder.mkdir()
    Retention(engine.parts).sweep()
    assert living.exists()
    assert not ended.exists()
    assert not unknown.exists()


def test_folders_of_preparations_are_kept_as_long_as_those_of_attempts(engine):
    ref = engine.submit(prefetch=[MODEL])
    name = preparation_of(engine, ref)
    engine.executor.finish(name)
    engine.wait(ref, "running")
    engine.clock.ahead += 3 * 86400
    Retention(engine.parts).sweep()
    assert name in engine.executor.known()
    engine.clock.ahead += 60 * 86400
    Retention(engine.parts).sweep()
    assert name not in engine.executor.known()


def test_the_log_of_a_download_that_failed_can_be_read(engine):
    ref = engine.submit(prefetch=[MODEL])
    name = preparation_of(engine, ref)
    tell_outcome(engine, ref, name, code="not_found", uri=MODEL)
    engine.executor.finish(name, 10)
    engine.wait(ref, "failed")
    assert engine.yard.log_path(ref) == (engine.executor.log_path(name), True)
