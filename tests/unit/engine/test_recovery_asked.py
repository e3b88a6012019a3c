"""Recovery that somebody asks for, jobs that say it differently, GPUs that are suspected."""

import json
import os
from dataclasses import replace

import pytest

import checkpoint_files as made
from engine_yard import ANN, BOB
from failing_attempts import OOM, fail, next_attempt
from runyard.domain import errors, events
from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.engine.access.actor import Actor
from scripted_machine import ScriptedMachine
from yards import until

IMPORT = "ModuleNotFoundError: No module named 'x'\n"
NETWORK = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub.example', port=443): "
    "Max retries exceeded with url: /a (Caused by NewConnectionError)\n"
)


def test_an_attempt_by_a_plan_is_whoever_owns_the_job(engine):
    """R22: nobody else, and only of a job that failed."""
    ref = engine.running(["train", "--batch-size", "4"])
    with pytest.raises(errors.NotEnded):
        engine.yard.recover(ref, ANN)
    fail(engine, ref, OOM)
    engine.wait(ref, "failed")
    with pytest.raises(errors.Forbidden):
        engine.yard.recover(ref, BOB)
    with pytest.raises(errors.Forbidden):
        engine.yard.recover(ref, Actor("eve", "viewer", 3))
    found = engine.yard.recover(ref, ANN)
    assert found.plan.changes[0].after == "2"
    assert next_attempt(engine, ref, 2).argv[-1] == "2"
    assert engine.job(ref).retry_count == 1
    engine.finish(ref, 0)
    engine.wait(ref, "completed")
    with pytest.raises(errors.AlreadyEnded):
        engine.yard.recover(ref, ANN)


def test_a_dry_run_of_a_job_that_is_retried_tells_its_plan(engine):
    ref = engine.running(max_retries=3, retry_delays=[600])
    engine.finish(ref, 1)
    engine.wait(ref, "retrying")
    found = engine.yard.recover(ref, ANN, dry_run=True)
    assert found.plan.delay_s >= 600
    assert engine.status(ref) == "retrying"


def test_where_no_plan_helps_it_says_so(engine):
    ref = engine.running()
    fail(engine, ref, IMPORT)
    engine.wait(ref, "failed")
    assert not engine.yard.recover(ref, ANN, dry_run=True).plan.retries
    with pytest.raises(errors.Conflict) as refused:
        engine.yard.recover(ref, ANN)
    assert refused.value.params["reason"]["code"] == "not_retryable"
    engine.yard.retry(ref, ANN)
    engine.wait(ref, "running")


@pytest.mark.parametrize(
    ("wanted", "text", "code"),
    [
        ({"network": "never"}, NETWORK, "by_override"),
        ({"out_of_memory": {"strategy": "never"}}, OOM, "by_override"),
        ({"default": {"max_attempts": 0}}, "nothing is known\n", "budget_used_up"),
    ],
)
def test_a_job_may_forbid_it(engine, wanted, text, code):
    """R20: per failure type, category or for all."""
    ref = engine.running(["train", "--batch-size", "4"], max_retries=3, recovery=wanted)
    fail(engine, ref, text)
    engine.wait(ref, "failed")
    assert engine.reason(ref)[0] == code


def test_a_job_may_ask_for_another_value_and_delay(engine):
    """R20: the person's own values count more than ours."""
    wanted = {"network": {"delays": [7], "env": {"HF_ENDPOINT": "https://mirror.example"}}}
    ref = engine.running("train", max_retries=3, recovery=wanted)
    fail(engine, ref, NETWORK)
    engine.wait(ref, "retrying")
    assert 7 <= engine.attempts(ref)[0].plan["delay_s"] < 8
    launch = next_attempt(engine, ref, 2)
    assert launch.env["HF_ENDPOINT"] == "https://mirror.example"


def test_explain_tells_the_way_there(engine):
    """R18: each failure with its line, the changes in all, and what happens next."""
    ref = engine.running(["train", "--batch-size", "8"], max_retries=3)
    fail(engine, ref, OOM)
    next_attempt(engine, ref, 2)
    fail(engine, ref, OOM)
    next_attempt(engine, ref, 3)
    fail(engine, ref, IMPORT)
    engine.wait(ref, "failed")
    told = engine.yard.explain(ref)
    assert [one["category"] for one in told["failures"]] == ["gpu_oom", "gpu_oom", "import"]
    assert [(one["before"], one["after"]) for one in told["changes"]] == [("8", "2")]
    assert told["next"]["code"] == "given_up"
    assert told["diagnosis"]["category"] == "import"
    assert told["reproduce"]["command"] == ("train", "--batch-size", "2")


def test_the_command_to_reproduce_is_the_one_that_ran(engine, tmp_path):
    """R18: with its places, parameters, checkpoint and environment; secrets stay hidden."""
    ref = engine.running(
        "train --lr {lr} --out {output_dir} --resume {resume_from} ${HOME}",
        params={"lr": 0.1, "api_token": "hidden-1"},
        env_vars={"DATA": "/data", "HF_TOKEN": "hidden-2"},
        max_retries=3,
        checkpoint={"dir": str(tmp_path / "ckpt")},
        output_path=str(tmp_path / "out put"),
    )
    made.torch_file(tmp_path / "ckpt" / "step_5.pt", step=5)
    job = engine.job(ref)
    record = CheckpointRecord(job.id, 1, str(tmp_path / "ckpt" / "step_5.pt"), "torch", 1, 1.0, 5)
    good = replace(record, size_bytes=os.stat(record.path).st_size, saved_at=engine.clock())
    good = replace(good, verdict=CheckpointVerdict.GOOD, checked_at=good.saved_at)
    engine.store.write(lambda tx: tx.put_checkpoints([good]))
    engine.finish(ref, None, cause="supervisor_lost")
    launch = next_attempt(engine, ref, 2)
    fail(engine, ref, IMPORT)
    engine.wait(ref, "failed")
    until(lambda: "checkpoint_chosen" in engine.events(ref))
    told = engine.yard.explain(ref)["reproduce"]
    assert told["command"] == launch.argv[-1]
    assert told["command"] == (
        f"train --lr 0.1 --out '{tmp_path}/out put' --resume {record.path} ${{HOME}}"
    )
    assert told["env"] == {
        "DATA": "/data",
        "HF_TOKEN": "***",
        "RUNYARD_OUTPUT_DIR": f"{tmp_path}/out put",
        "RUNYARD_CHECKPOINT_DIR": str(tmp_path / "ckpt"),
        "RUNYARD_RESUME_FROM": record.path,
        "RUNYARD_PARAMS": '{"lr": 0.1, "api_token": "***"}',
    }
    assert "hidden" not in json.dumps(engine.yard.explain(ref)["reproduce"])


def test_a_repaired_job_is_told_once(engine):
    """R20: to whoever asked to hear of repairs, when it has completed."""
    hook = {"type": "webhook", "url": "http://127.0.0.1:9/x", "events": ["repaired"]}
    ref = engine.running(["train", "--batch-size", "8"], max_retries=3, notify=[hook])
    fail(engine, ref, OOM)
    next_attempt(engine, ref, 2)
    engine.finish(ref, 0)
    engine.wait(ref, "completed")
    with engine.store.read() as reader:
        [told] = reader.due_deliveries(engine.clock() + 60, 10)
    assert told.event == "repaired"
    assert told.body["plan"]["strategy"] == "reduce_batch_size"
    assert told.body["job"]["status"] == "completed"


def test_a_suspected_gpu_is_fenced(make_engine):
    """R20: broken hardware gets no further job, and the next attempt is elsewhere."""
    engine = make_engine(machine=ScriptedMachine(2))
    ref = engine.running("train", gpu_count=1, max_retries=3)
    first = engine.attempts(ref)[0].gpus[0].uuid
    fail(
        engine,
        ref,
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\n",
    )
    next_attempt(engine, ref, 2)
    assert engine.attempts(ref)[0].plan["fence"] == [first]
    assert engine.attempts(ref)[1].gpus[0].uuid != first
    with engine.store.read() as reader:
        assert first in reader.fenced_gpus(engine.parts.machine.machine_id)
        codes = [one.event.code for one in reader.events()]
    assert events.GPU_FENCED in codes
