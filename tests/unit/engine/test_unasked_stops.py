"""A stop that no person asked for keeps the job running until its end, and says why (R27)."""

from engine_yard import ANN
from runyard.engine.cancel.unasked_stops import RETRY, STOP, Why
from runyard.executors.base import News, NewsKind
from yards import until

RULE = Why("rule", "rule:high", STOP, rule="high")


def stop(engine, ref, why=RULE, **options):
    return engine.yard._commands.stop(ref, why, **options)


def test_it_runs_on_while_it_stops_and_ends_as_failed(engine):
    engine.executor.stubborn = True
    ref = engine.running(max_retries=3)
    assert stop(engine, ref, grace_s=7)
    job = engine.job(ref)
    assert (job.status, job.stage) == ("running", "finishing")
    assert engine.reason(ref) == ("stopping", {"cause": "rule", "then": "stop", "rule": "high"})
    [asked] = engine.executor.stops[f"{ref}.1"]
    assert (asked.cause, asked.grace_s, asked.requested_by) == ("rule", 7, "rule:high")
    assert not stop(engine, ref), "it is asked once"
    engine.finish(ref, 0, cause="cancelled")
    engine.wait(ref, "failed")
    assert engine.reason(ref)[1]["rule"] == "high"
    assert "job_stopping" in engine.events(ref)
    assert len(engine.attempts(ref)) == 1, "it is not tried again"


def test_one_that_is_to_be_tried_again_is(engine):
    ref = engine.running(max_retries=1)
    assert stop(engine, ref, Why("stall", "monitor", RETRY))
    engine.wait(ref, "retrying")
    assert engine.job(ref).charged == 1
    engine.let_time_pass(lambda: engine.status(ref) == "running")
    assert stop(engine, ref, Why("stall", "monitor", RETRY))
    engine.wait(ref, "failed")
    code, params = engine.reason(ref)
    assert (code, params["last"]["params"]["cause"]) == ("retries_used_up", "stall")


def test_an_end_of_its_own_before_the_stop_counts(engine):
    engine.executor.stubborn = True
    ref = engine.running()
    assert stop(engine, ref)
    engine.finish(ref, 0)
    engine.wait(ref, "completed")


def test_a_person_may_cancel_what_is_being_stopped(engine):
    engine.executor.stubborn = True
    ref = engine.running()
    assert stop(engine, ref)
    engine.yard.cancel(ref, ANN)
    assert engine.status(ref) == "cancelling"
    assert [one.seq for one in engine.executor.stops[f"{ref}.1"]] == [1, 2]
    engine.finish(ref, None, signal=15, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("user_cancelled", {"by": "ann"})


def test_what_does_not_run_is_not_stopped(engine):
    held = engine.submit(hold=True)
    assert not stop(engine, held)
    ref = engine.running()
    engine.finish(ref)
    engine.wait(ref, "completed")
    assert not stop(engine, ref)


def test_a_stop_that_did_not_arrive_is_repeated(engine):
    engine.executor.stubborn = True
    ref = engine.running()
    assert stop(engine, ref, grace_s=3)
    engine.executor.stops.clear()
    engine.look()
    [again] = until(lambda: engine.executor.stops.get(f"{ref}.1"))
    assert (again.cause, again.grace_s, again.seq) == ("rule", 3, 1)


def test_a_stop_that_the_supervisor_decided_is_told(engine):
    """R27: with the same words as one of a rule; a person may still cancel it."""
    engine.executor.stubborn = True
    ref = engine.running()
    told = News(f"{ref}.1", NewsKind.STOPPING, 7.0, cause="memory", grace_s=40.0)
    engine.executor.tell(told)
    assert engine.wait_reason(ref, "stopping") == {"cause": "memory"}
    job = engine.job(ref)
    assert (job.status, job.stage) == ("running", "finishing")
    assert not stop(engine, ref), "it is being stopped already"
    engine.executor.tell(told)
    engine.yard.cancel(ref, ANN)
    assert engine.status(ref) == "cancelling"
    engine.finish(ref, None, signal=15, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.events(ref).count("job_stopping") == 1
