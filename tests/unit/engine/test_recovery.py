"""What follows a failure: the cause is named, and the next attempt differs as that cause needs."""

import pytest

from engine_yard import ANN
from failing_attempts import OOM, ask_for_the_scale, fail, next_attempt
from runyard.domain import events

TRAIN = ["python", "train.py", "--batch-size", "32", "--gradient_accumulation_steps", "1"]


def test_an_out_of_memory_halves_the_batch_until_it_fits(engine):
    """R18, R20: the proof is kept, the effective batch stays, every change is shown."""
    ref = engine.running(TRAIN, max_retries=3)
    fail(engine, ref, "Epoch 1\n" + OOM)
    launch = next_attempt(engine, ref, 2)
    assert launch.argv[-3:] == ("16", "--gradient_accumulation_steps", "2")
    fail(engine, ref, OOM)
    launch = next_attempt(engine, ref, 3)
    assert launch.argv[-3:] == ("8", "--gradient_accumulation_steps", "4")
    engine.finish(ref, 0)
    engine.wait(ref, "completed")
    first, second, third = engine.attempts(ref)
    assert first.diagnosis["failure_type"] == "out_of_memory"
    assert "Tried to allocate 30.00 GiB" in first.diagnosis["root"]["text"]
    assert first.diagnosis["root"]["number"] == 5
    assert first.plan["strategy"] == "reduce_batch_size"
    assert first.plan["changes"][0]["after"] == "16"
    assert second.plan["changes"][0]["after"] == "8"
    assert third.plan is None
    told = [one.event for one in engine.yard.events(ref) if one.event.code == events.JOB_RETRYING]
    assert told[0].params["plan"]["strategy"] == "reduce_batch_size"
    assert told[0].params["diagnosis"]["category"] == "gpu_oom"


def test_a_declared_parameter_is_changed_where_the_command_names_it(engine):
    """R20: in the command, in the environment and in the attempt's own record."""
    ref = engine.running(
        "python train.py --batch-size {batch_size} --accum_steps {accum_steps}",
        params={"batch_size": 8, "accum_steps": 2},
        max_retries=3,
    )
    fail(engine, ref, OOM)
    launch = next_attempt(engine, ref, 2)
    assert launch.argv[-1] == "python train.py --batch-size 4 --accum_steps 4"
    assert launch.env["RUNYARD_PARAM_BATCH_SIZE"] == "4"
    assert engine.attempts(ref)[1].params == {"batch_size": 4, "accum_steps": 4}


def test_a_program_that_may_not_ask_is_told_a_smaller_scale_once(engine):
    """R20: nothing to change in the command, so RUNYARD_BATCH_SCALE is halved; kept over an end
    that has nothing to do with it, and not again where that changed nothing."""
    ref = engine.running("python train.py", max_retries=3)
    assert engine.executor.launches[f"{ref}.1"].env["RUNYARD_BATCH_SCALE"] == "1"
    fail(engine, ref, OOM)
    assert next_attempt(engine, ref, 2).env["RUNYARD_BATCH_SCALE"] == "0.5"
    engine.finish(ref, None, cause="supervisor_lost")
    assert next_attempt(engine, ref, 3).env["RUNYARD_BATCH_SCALE"] == "0.5"
    fail(engine, ref, OOM)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == "nothing_to_change"


def test_a_program_that_asks_is_told_smaller_scales_as_far_as_the_budget_goes(engine):
    """R20: by the mark that asking leaves, whatever the messages say."""
    ref = engine.running("python train.py", max_retries=3)
    for number, scale in enumerate(("0.5", "0.25", "0.125", "0.0625"), start=2):
        ask_for_the_scale(engine, ref)
        fail(engine, ref, OOM)
        assert next_attempt(engine, ref, number).env["RUNYARD_BATCH_SCALE"] == scale
    ask_for_the_scale(engine, ref)
    fail(engine, ref, OOM)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == "budget_used_up"


def test_a_program_that_shrinks_with_the_scale_is_one_that_asks(engine):
    """R20: in any language, without a mark: a smaller scale changed what it tried to allocate."""
    ref = engine.running("python train.py", max_retries=3)
    fail(engine, ref, OOM)
    assert next_attempt(engine, ref, 2).env["RUNYARD_BATCH_SCALE"] == "0.5"
    fail(engine, ref, OOM.replace("30.00 GiB", "15.00 GiB"))
    assert next_attempt(engine, ref, 3).env["RUNYARD_BATCH_SCALE"] == "0.25"
    fail(engine, ref, OOM.replace("30.00 GiB", "15.00 GiB"))
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == "nothing_to_change"


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("ModuleNotFoundError: No module named 'flash_attn'\n", "import"),
        ("torch.cuda: error: unrecognized arguments: --foo\n", "config"),
    ],
)
def test_what_cannot_help_is_not_tried(engine, text, category):
    """R18: an import that fails, fails again; the reason says so and no retry is used."""
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n'
    ref = engine.running(max_retries=3)
    fail(engine, ref, (traceback if category == "import" else "") + text)
    engine.wait(ref, "failed")
    code, params = engine.reason(ref)
    assert (code, params["category"]) == ("not_retryable", category)
    assert params["last"]["code"] == "exit_code"
    assert engine.job(ref).retry_count == 0
    assert engine.attempts(ref)[0].plan["strategy"] == "give_up"


def test_an_unknown_failure_is_retried_as_the_job_says(engine):
    """R21: max_retries with retry_delays, each charged."""
    ref = engine.running(max_retries=2, retry_delays=[100, 200])
    for number in (2, 3):
        engine.finish(ref, 1)
        next_attempt(engine, ref, number)
    engine.finish(ref, 1)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == "retries_used_up"
    assert engine.job(ref).charged == 2
    waits = [one.plan["delay_s"] for one in engine.attempts(ref)[:2]]
    assert [int(wait) // 100 for wait in waits] == [1, 2]


def test_the_same_root_three_times_without_a_step_stops(engine):
    """R21: whatever max_retries says."""
    ref = engine.running(max_retries=9, retry_delays=[1])
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nOddError: at 0x7f01\n'
    for number in (2, 3):
        fail(engine, ref, text)
        next_attempt(engine, ref, number)
    fail(engine, ref, text)
    engine.wait(ref, "failed")
    code, params = engine.reason(ref)
    assert (code, params["times"]) == ("same_root_again", 3)
    assert "OddError" in params["line"]


def test_a_plan_that_changed_nothing_is_stopped_by_its_budget(engine):
    """R21: causes have budgets of their own; a batch of one cannot be halved."""
    ref = engine.running(["train", "--batch-size", "2"], max_retries=9)
    fail(engine, ref, OOM)
    next_attempt(engine, ref, 2)
    fail(engine, ref, OOM)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == "batch_size_is_one"
    assert engine.job(ref).charged == 0


def test_a_persons_retry_keeps_the_changes_unless_fresh(engine):
    """R20: what was learned about the job stays with it."""
    ref = engine.running(["train", "--batch-size", "4"], max_retries=1)
    fail(engine, ref, OOM)
    next_attempt(engine, ref, 2)
    fail(engine, ref, "ModuleNotFoundError: No module named 'x'\n")
    engine.wait(ref, "failed")
    for number in (3, 4):
        engine.yard.retry(ref, ANN)
        assert next_attempt(engine, ref, number).argv[-1] == "2"
        engine.finish(ref, 0)
        engine.wait(ref, "completed")
    engine.yard.retry(ref, ANN, fresh=True)
    assert next_attempt(engine, ref, 5).argv[-1] == "4"


def test_an_end_is_recorded_even_if_its_log_cannot_be_judged(engine, monkeypatch):
    """Diagnosing never loses an end."""
    from runyard.engine.recover import rank_logs

    def broken(_evidence):
        raise RuntimeError("broken")

    monkeypatch.setattr(rank_logs, "classify", broken)
    ref = engine.running(max_retries=0)
    engine.finish(ref, 1)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == "exit_code"
    assert engine.attempts(ref)[0].diagnosis is None
