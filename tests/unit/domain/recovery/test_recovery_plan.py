"""Plans: what each failure gets, what it costs, and when nothing more is tried."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from runyard.domain import retrying
from runyard.domain.failures.categories import Category, failure_type
from runyard.domain.failures.diagnosis import Diagnosis
from runyard.domain.job import JobSpec
from runyard.domain.reasons import Reason
from runyard.domain.recovery import backoff, plan_reasons, policy
from runyard.domain.recovery.adjustments import Adjustments, applied
from runyard.domain.recovery.ledger import PastAttempt, progressed_at, same_root
from runyard.domain.recovery.overrides import BadOverride, read
from runyard.domain.recovery.plan import as_mapping, from_mapping, plan
from runyard.domain.recovery.policy import Strategy
from runyard.domain.recovery.step import Circumstances, ResumeRule
from runyard.domain.states import AttemptEnd
from runyard.engine.schedule import space_waits

HF = "python run.py --per_device_train_batch_size 8 --gradient_accumulation_steps 1 --learning_rate 5e-05 --dataloader_num_workers 4"


def diagnosed(category, **facts):
    kind = failure_type(category)
    return Diagnosis(kind, category, 0.9, f"{category}: x", Reason(category), facts=facts)


def past(category, number=1, step=None, **more):
    return PastAttempt(number, category, f"{category}: x", step, **more)


def planned(category, command="t", *, history=None, overrides=None, facts=None, spec=None, **more):
    spec = spec or JobSpec("j", command)
    made = plan(
        diagnosed(category, **(facts or {})),
        spec,
        history or (past(category),),
        read(overrides),
        **more,
    )
    assert from_mapping(json.loads(json.dumps(as_mapping(made)))) == made
    return made


def command_of(made, command):
    return applied(JobSpec("j", command), made.adjustments).command


# what each failure gets


def test_memory_of_the_gpu():
    """R20"""
    made = planned(Category.GPU_OOM, HF)
    assert (made.strategy, made.delay_s, made.charged) == (Strategy.REDUCE_BATCH_SIZE, 0, False)
    assert "--per_device_train_batch_size 4 --gradient_accumulation_steps 2" in command_of(
        made, HF
    )
    assert made.reason.code == plan_reasons.BATCH_SIZE_REDUCED
    assert made.reason.params["effective_kept"] is True
    assert made.resume.rule is ResumeRule.NEWEST_GOOD


def test_memory_of_the_gpu_down_to_one():
    """Each step adds to the last, though a checkpoint remembers the old size."""
    adjustments, history, sizes = Adjustments(), [], []
    for number in range(1, 6):
        history.append(past(Category.GPU_OOM, number, 10, settings=adjustments.settings))
        made = planned(Category.GPU_OOM, HF, history=history, adjustments=adjustments)
        if not made.retries:
            break
        adjustments = made.adjustments
        sizes.append(adjustments.flags["--per_device_train_batch_size"])
    assert sizes == ["4", "2", "1"]
    assert made.reason.code == plan_reasons.BATCH_SIZE_IS_ONE


def test_the_last_resort_of_gpu_memory():
    spec = JobSpec("j", "t --batch-size 1", params={"gradient_checkpointing": False})
    made = planned(Category.GPU_OOM, spec=spec)
    assert made.adjustments.params == {"gradient_checkpointing": True}
    assert made.reason.code == plan_reasons.RECOMPUTE_ACTIVATIONS


def test_memory_of_the_gpu_without_a_batch_size():
    made = planned(Category.GPU_OOM, "t")
    assert made.adjustments.batch_scale == 0.5
    history = (past(Category.GPU_OOM, 1), past(Category.GPU_OOM, 2, settings="x"))
    again = planned(Category.GPU_OOM, "t", history=history, adjustments=made.adjustments)
    assert again.reason == Reason(
        plan_reasons.NOTHING_TO_CHANGE, {"category": "gpu_oom", "what": "batch_size"}
    )
    asks = Circumstances(asks_batch_scale=True)
    goes_on = planned(
        Category.GPU_OOM, HF, history=history, adjustments=made.adjustments, circumstances=asks
    )
    assert goes_on.adjustments == Adjustments(batch_scale=0.25)


def test_memory_in_pieces():
    facts = {"tried_bytes": 2, "unallocated_bytes": 5}
    made = planned(Category.GPU_OOM, HF, facts=facts)
    assert made.adjustments.env == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    spec = JobSpec("j", HF, env_vars={"PYTORCH_CUDA_ALLOC_CONF": "backend:native"})
    assert planned(Category.GPU_OOM, spec=spec, facts=facts).adjustments.env == {}


def test_memory_that_others_hold_is_waited_for():
    made = planned(Category.GPU_OOM, HF, facts={"foreign_bytes": 1 << 30})
    assert (made.strategy, made.changes) == (Strategy.CLEAR_CACHE, ())
    assert made.reason.code == plan_reasons.GPU_HELD_BY_OTHERS


@pytest.mark.parametrize("category", list(Category))
def test_a_plan_waits_for_nothing_but_what_somebody_looks_at(category):
    """A `wait_for` that nobody acts on would be a promise without a keeper."""
    facts = {"foreign_bytes": 1 << 30, "path": "/cache/hub/model.bin"}
    waits = planned(category, HF, facts=facts).wait_for
    assert waits is None or waits["kind"] == space_waits.KIND


def test_a_program_that_searched_by_itself():
    made = planned(Category.GPU_OOM, HF, facts={"variant": "search_exhausted"})
    assert made.reason.code == plan_reasons.BATCH_SEARCH_EXHAUSTED


@pytest.mark.parametrize("category", [Category.HOST_OOM, Category.SHM, Category.FD_LIMIT])
def test_memory_of_the_machine(category):
    made = planned(category, HF + " --dataloader_pin_memory True")
    assert made.adjustments.flags == {
        "--dataloader_num_workers": "2",
        "--dataloader_pin_memory": "False",
    }
    assert (made.strategy, made.delay_s) == (Strategy.RECONFIGURE_PARAMETERS, 30)
    assert planned(category).strategy is Strategy.RETRY_SAME
    twice = (past(category), past(category, 2))
    assert planned(category, history=twice).reason.code == plan_reasons.NOTHING_TO_CHANGE
    pinned = planned(category, "t --pin_memory True")
    assert pinned.reason.code == plan_reasons.PINNING_OFF, "no worker is taken away"
    assert made.reason.code == plan_reasons.WORKERS_REDUCED


@pytest.mark.parametrize(("own", "seconds"), [(None, 7.0), ((), 7.0), ((3.0,), 3.0)])
def test_the_delays_of_a_job_count_in_the_same_way_whoever_asks(own, seconds):
    """R21: a list without any says nothing, as if it were not there."""
    delays = backoff.delays_of(own, (7.0,))
    spec = JobSpec("j", "t", retry_delays=own, max_retries=3)
    made = planned(Category.UNKNOWN_KILL, spec=spec, delays=(7.0,))
    assert made.delay_s == seconds
    known = retrying.decide(AttemptEnd.FAILED, "exited", charged=0, max_retries=3, delays=delays)
    assert known == retrying.Retry(seconds, charged=True)


def test_divergence_goes_back_with_a_lower_rate():
    """R20"""
    made = planned(Category.NAN, HF, facts={"bad_step": 300})
    assert made.strategy is Strategy.RESTART_FROM_CHECKPOINT
    assert (made.resume.rule, made.resume.step) == (ResumeRule.BEFORE_STEP, 300)
    assert made.adjustments.flags == {"--learning_rate": "2.5e-05"}
    history = (past(Category.NAN), past(Category.NAN, 2, settings="a"))
    again = planned(
        Category.NAN, HF, history=history, facts={"bad_step": 300}, adjustments=made.adjustments
    )
    assert (again.resume.back, again.adjustments.flags["--learning_rate"]) == (1, "1.25e-05")
    thrice = (*history, past(Category.NAN, 3, settings="b"))
    assert planned(Category.NAN, HF, history=thrice).reason.code == plan_reasons.BUDGET_USED_UP


def test_divergence_without_a_rate():
    older = Circumstances(good_steps=(100, 250, 350))
    made = planned(Category.NAN, "t", facts={"bad_step": 300}, circumstances=older)
    assert made.reason.code == plan_reasons.ROLLED_BACK
    none = Circumstances(good_steps=(350,))
    assert not planned(Category.NAN, "t", facts={"bad_step": 300}, circumstances=none).retries
    unknown = planned(Category.NAN, "t --lr 1")
    assert (unknown.resume.rule, unknown.resume.back) == (ResumeRule.NEWEST_GOOD, 1)


def test_a_broken_checkpoint():
    resumed = Circumstances(resumed=True, good_steps=(5,))
    named = planned(Category.CKPT_CORRUPT, facts={"path": "/c/5.pt"}, circumstances=resumed)
    assert (named.resume.excluding, named.resume.back) == (("/c/5.pt",), 0)
    unnamed = planned(Category.CKPT_CORRUPT, circumstances=resumed)
    assert (unnamed.resume.excluding, unnamed.resume.back) == ((), 1)
    cached = "/home/u/.cache/huggingface/hub/m/model.safetensors"
    made = planned(Category.CKPT_CORRUPT, facts={"path": cached})
    assert (made.strategy, made.clear) == (Strategy.CLEAR_CACHE, (cached,))
    none = Circumstances(good_steps=())
    assert not planned(Category.CKPT_CORRUPT, circumstances=none).retries


def test_a_checkpoint_that_is_not_there():
    command = "t --resume_from_checkpoint True"
    made = planned(Category.CKPT_MISSING, command)
    assert command_of(made, command) == "t --resume_from_checkpoint False"
    assert made.resume.rule is ResumeRule.NONE
    assert not planned(Category.CKPT_MISSING).retries
    assert planned(Category.CKPT_MISSING, circumstances=Circumstances(resumed=True)).retries


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("torchrun --master_port 29500 t", "torchrun --master_port 31000 t"),
        ("torchrun --rdzv_endpoint=h:29400 t", "torchrun --rdzv_endpoint=h:31000 t"),
        ("t --dist_url tcp://127.0.0.1:23456", "t --dist_url tcp://127.0.0.1:31000"),
    ],
)
def test_another_port(command, after):
    made = planned(Category.PORT_IN_USE, command, circumstances=Circumstances(spare_port=31000))
    assert command_of(made, command) == after
    assert planned(Category.PORT_IN_USE, command).strategy is Strategy.RETRY_SAME


def test_broken_hardware_is_fenced():
    made = planned(Category.GPU_HW, facts={"gpu_uuids": ["GPU-b"]})
    assert (made.strategy, made.fence) == (Strategy.OTHER_GPUS_FENCED, ("GPU-b",))
    one = planned(Category.GPU_HW, circumstances=Circumstances(gpus=("GPU-a",)))
    assert one.fence == ("GPU-a",)
    two = planned(Category.GPU_HW, circumstances=Circumstances(gpus=("GPU-a", "GPU-b")))
    assert (two.fence, two.avoid) == ((), ("GPU-a", "GPU-b"))


def test_a_fault_gets_another_gpu_once():
    gpus = Circumstances(gpus=("GPU-a",))
    made = planned(Category.CUDA_FAULT, circumstances=gpus)
    assert (made.avoid, made.fence, made.charged, made.delay_s) == (("GPU-a",), (), False, 30)
    again = (past(Category.CUDA_FAULT, 1, 5), past(Category.CUDA_FAULT, 2, 5))
    assert planned(Category.CUDA_FAULT, history=again).reason.code == plan_reasons.SAME_ROOT_AGAIN
    further = (past(Category.CUDA_FAULT, 1, 5), past(Category.CUDA_FAULT, 2, 900))
    assert planned(Category.CUDA_FAULT, history=further).charged


def test_space_is_waited_for():
    made = planned(
        Category.DISK_FULL,
        facts={"path": "/out", "free_bytes": 5},
        circumstances=Circumstances(wanted_bytes=900),
    )
    assert made.wait_for == {"kind": "disk", "path": "/out", "bytes": 900}
    assert made.strategy is Strategy.WAIT_FOR_SPACE


@pytest.mark.parametrize("category", sorted(policy.NEVER_RETRIED))
def test_what_would_happen_again_is_not_tried(category):
    """R20"""
    made = planned(category, HF)
    assert (made.strategy, made.reason.code) == (Strategy.GIVE_UP, plan_reasons.NOT_RETRYABLE)


def test_every_category_has_a_row():
    assert set(policy.ROWS) == set(Category)
    assert {row.strategy for row in policy.ROWS.values()} == set(Strategy)
    for name in ("import", "env", "code", "config", "path", "auth", "model_id", "ckpt_mismatch"):
        assert Category(name) in policy.NEVER_RETRIED


def test_a_flag_of_ours_that_is_not_known_is_withdrawn():
    command = "t --per_device_train_batch_size 8"
    made = planned(Category.GPU_OOM, command)
    facts = {"arguments": "--gradient_accumulation_steps 2"}
    history = (past(Category.GPU_OOM), past(Category.CONFIG, 2, settings="x"))
    back = planned(
        Category.CONFIG, command, history=history, facts=facts, adjustments=made.adjustments
    )
    assert back.reason.code == plan_reasons.OWN_CHANGE_WITHDRAWN
    assert command_of(back, command) == "t --per_device_train_batch_size 4"
    theirs = planned(
        Category.CONFIG, command, facts={"arguments": "--x"}, adjustments=made.adjustments
    )
    assert not theirs.retries
    smaller = planned(Category.GPU_OOM, command, adjustments=back.adjustments)
    assert command_of(smaller, command) == "t --per_device_train_batch_size 2"


# what it costs


def test_unknown_failures_use_the_retries_of_the_job():
    """R21"""
    history, waits = [], []
    for number in range(1, 6):
        history.append(past(Category.UNKNOWN, number, number, charged=True))
        made = planned(Category.UNKNOWN, history=history)
        if not made.retries:
            break
        assert made.charged
        waits.append(made.delay_s)
    assert waits == [60, 300, 900]
    assert made.reason == Reason(
        plan_reasons.RETRIES_USED_UP, {"category": "unknown", "max_retries": 3}
    )


def test_the_delays_of_the_job_and_jitter():
    spec = JobSpec("j", "t", retry_delays=(1.0, 2.0))
    assert planned(Category.UNKNOWN, spec=spec).delay_s == 1
    assert planned(Category.UNKNOWN, delays=(5.0,)).delay_s == 5
    assert planned(Category.UNKNOWN, jitter=0.5).delay_s == pytest.approx(63)
    assert planned(Category.RATE_LIMIT, facts={"retry_after_s": 3600}).delay_s == 3600


def test_three_times_the_same_root_without_progress():
    """R21: whatever max_retries says."""
    spec = JobSpec("j", "t", max_retries=50)
    history = [past(Category.UNKNOWN, number, 40) for number in (1, 2, 3)]
    made = planned(Category.UNKNOWN, spec=spec, history=history)
    assert made.reason == Reason(
        plan_reasons.SAME_ROOT_AGAIN,
        {"category": "unknown", "times": 3, "fingerprint": "unknown: x", "step": 40},
    )
    assert planned(Category.UNKNOWN, spec=spec, history=history[:2]).retries
    further = [*history, past(Category.UNKNOWN, 4, 41)]
    assert planned(Category.UNKNOWN, spec=spec, history=further).retries


def test_a_failure_that_nothing_explains_has_all_its_retries():
    """R21"""
    silent = "unknown: no line: exit_code 1"
    history = [PastAttempt(number, Category.UNKNOWN, silent, charged=True) for number in (1, 2, 3)]
    assert planned(Category.UNKNOWN, history=history).delay_s == 900


def test_what_counts_as_the_same():
    other = PastAttempt(2, Category.UNKNOWN, "unknown: y", 5)
    mixed = [past(Category.UNKNOWN, 1, 5), other, past(Category.UNKNOWN, 3, 5), other]
    assert same_root([*mixed, past(Category.UNKNOWN, 5, 5)]) == 3
    changed = past(Category.UNKNOWN, 2, 5, settings="other")
    assert same_root([past(Category.UNKNOWN, 1, 5), changed]) == 1
    assert progressed_at([past(Category.UNKNOWN, 1, None), past(Category.UNKNOWN, 2, None)]) == 0


def test_budgets_of_causes_are_separate():
    history = [
        *(past(Category.NETWORK, number, settings=str(number)) for number in range(1, 6)),
        past(Category.GPU_OOM, 6),
    ]
    assert planned(Category.GPU_OOM, HF, history=history).retries
    history = [*history[:5], past(Category.NETWORK, 6)]
    assert planned(Category.NETWORK, history=history).reason.code == plan_reasons.BUDGET_USED_UP
    advanced = [*history, past(Category.NETWORK, 7, 100)]
    assert planned(Category.NETWORK, history=advanced).delay_s == 30  # fresh after progress


@pytest.mark.parametrize("category", [Category.PREEMPTED, Category.SERVER_RESTART])
def test_trouble_of_the_host_is_free(category):
    history = [past(category, number, charged=False) for number in range(1, 15)]
    made = planned(category, history=history)
    assert (made.retries, made.charged) == (True, False)
    history = [past(category, number) for number in range(1, 30)]
    assert not planned(category, history=history).retries


def test_no_retries_asked():
    spec = JobSpec("j", HF, max_retries=0)
    made = planned(Category.GPU_OOM, spec=spec)
    assert made.reason.code == plan_reasons.NO_RETRIES_ASKED
    assert not planned(Category.SERVER_RESTART, spec=spec).retries
    never = (past(Category.SERVER_RESTART, never_ran=True),)
    assert planned(Category.SERVER_RESTART, spec=spec, history=never).retries


# what a person wants instead


def test_overrides():
    none = planned(Category.GPU_OOM, HF, overrides={"out_of_memory": "give_up"})
    assert none.reason.code == plan_reasons.BY_OVERRIDE
    fine = {"out_of_memory": "give_up", "gpu_oom": {"max_attempts": 1, "delays": [7]}}
    made = planned(Category.GPU_OOM, HF, overrides=fine)
    assert (made.strategy, made.delay_s) == (Strategy.REDUCE_BATCH_SIZE, 7)
    twice = (past(Category.GPU_OOM), past(Category.GPU_OOM, 2, settings="x"))
    assert not planned(Category.GPU_OOM, HF, overrides=fine, history=twice).retries
    forced = planned(Category.IMPORT, overrides={"import": "retry_same"})
    assert (forced.strategy, forced.delay_s) == (Strategy.RETRY_SAME, 60)
    own = {"default": {"params": {"precision": "bf16"}, "env": {"X": 1}}}
    made = planned(Category.NAN, "t --lr 1", overrides=own)
    assert made.adjustments.params == {"precision": "bf16"}
    assert made.adjustments.env == {"X": "1"}
    assert [change.kind for change in made.changes] == ["flag", "param", "env"]


@pytest.mark.parametrize(
    ("given_value", "code", "where"),
    [
        ({"oom": "give_up"}, "unknown_failure", "oom"),
        ({"nan": "pray"}, "bad_value", "nan"),
        ({"nan": {"strategy": "pray"}}, "bad_value", "nan.strategy"),
        ({"nan": {"retries": 3}}, "unknown_field", "nan.retries"),
        ({"nan": {"max_attempts": -1}}, "bad_value", "nan.max_attempts"),
        ({"nan": {"max_attempts": True}}, "bad_value", "nan.max_attempts"),
        ({"nan": {"delays": [-1]}}, "bad_value", "nan.delays"),
        ({"nan": {"delays": 5}}, "bad_value", "nan.delays"),
        ({"nan": {"params": 5}}, "bad_value", "nan.params"),
        ({"nan": 5}, "bad_value", "nan"),
    ],
)
def test_overrides_that_are_refused(given_value, code, where):
    with pytest.raises(BadOverride) as refused:
        read(given_value)
    assert (refused.value.code, refused.value.where) == (code, where)


@settings(deadline=None, max_examples=300)
@given(
    some.sampled_from(Category),
    some.text(alphabet="t -=bslr0123456789.ebatch_size'\"$", max_size=60),
    some.lists(
        some.builds(
            PastAttempt,
            some.integers(1, 9),
            some.sampled_from(Category),
            some.sampled_from(["a", "b"]),
            some.none() | some.integers(0, 50),
            some.sampled_from(["", "x"]),
            some.booleans(),
        ),
        max_size=8,
    ),
    some.dictionaries(
        some.sampled_from(["bad_step", "path", "variant", "foreign_bytes"]), some.none()
    ),
    some.integers(0, 5),
    some.booleans(),
)
def test_there_is_always_a_plan(category, command, history, facts, max_retries, resumed):
    spec = JobSpec("j", command, max_retries=max_retries)
    made = plan(
        diagnosed(category, **facts),
        spec,
        [*history, past(category, 10)],
        circumstances=Circumstances(resumed=resumed),
    )
    json.dumps(as_mapping(made))
    assert made.delay_s >= 0
    assert made.retries is (made.reason.code not in plan_reasons.GIVE_UPS)
    assert max_retries or not made.retries
    applied(spec, made.adjustments)


def test_three_times_is_the_rule_and_the_exceptions_are_written_down():
    """docs/decisions/0016 and docs/recovery.md name them."""
    other = {
        category: row.same_root
        for category, row in policy.ROWS.items()
        if row.strategy is not Strategy.GIVE_UP and row.same_root != policy.SAME_ROOT_LIMIT
    }
    assert other == {
        **dict.fromkeys((Category.CUDA_FAULT, Category.CRASH, Category.SEGFAULT), 2),
        **dict.fromkeys((Category.NETWORK, Category.RATE_LIMIT), 6),
        **dict.fromkeys((Category.PREEMPTED, Category.SERVER_RESTART), 20),
    }
