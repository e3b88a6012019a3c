"""Smaller micro-batches with the effective batch kept, wherever the job names them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from runyard.domain.job import JobSpec
from runyard.domain.recovery import batch, knobs
from runyard.domain.recovery.adjustments import Adjustments, applied, as_mapping, from_mapping
from runyard.domain.recovery.command_flags import Role


def halved(command="t", params=None, env=None, adjustments=None):
    spec = JobSpec("j", command, params=params or {}, env_vars=env or {})
    before = adjustments or Adjustments()
    made = batch.smaller(applied(spec, before), before)
    assert made is not None
    return made, applied(spec, made.adjustments)


def test_flags_of_a_command():
    """R20"""
    command = "python t.py --batch-size 32 --gradient_accumulation_steps 1 --lr 1"
    made, spec = halved(command)
    assert spec.command == "python t.py --batch-size 16 --gradient_accumulation_steps 2 --lr 1"
    assert (made.before, made.after, made.accumulation, made.effective_kept) == (32, 16, 2, True)
    again, spec = halved(command, adjustments=made.adjustments)
    assert spec.command == "python t.py --batch-size 8 --gradient_accumulation_steps 4 --lr 1"
    assert [(c.kind, c.name, c.before, c.after) for c in again.changes] == [
        ("flag", "--batch-size", "16", "8"),
        ("flag", "--gradient_accumulation_steps", "2", "4"),
    ]


def test_declared_parameters():
    made, spec = halved("t --bs {bs} --acc {acc}", {"bs": 8, "accumulation_steps": 2, "acc": 1})
    assert spec.params["bs"] == 4
    params = {"batch_size": 6, "grad_accum": 3}
    made, spec = halved("t {batch_size}", params)
    assert (spec.params, spec.command) == ({"batch_size": 3, "grad_accum": 6}, "t {batch_size}")
    assert [change.kind for change in made.changes] == ["param", "param"]


def test_a_parameter_with_its_own_name_behind_a_known_flag():
    _, spec = halved(
        "t --per_device_train_batch_size {n} --gradient_accumulation_steps {k}", {"n": 4, "k": 1}
    )
    assert spec.params == {"n": 2, "k": 2}


def test_variables_of_the_job():
    _, spec = halved(env={"BATCH_SIZE": "8", "OTHER": "x"})
    assert spec.env_vars == {"BATCH_SIZE": "4", "OTHER": "x"}


def test_the_partner_of_a_known_flag_is_added():
    made, spec = halved("python run.py --per_device_train_batch_size 8 --x 1")
    assert spec.command == (
        "python run.py --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --x 1"
    )
    assert made.effective_kept
    _, spec = halved(
        "python run.py --per_device_train_batch_size 8 --x 1", adjustments=made.adjustments
    )
    assert spec.command == (
        "python run.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --x 1"
    )
    _, spec = halved(("r", "--per-device-train-batch-size=8"))
    assert spec.command == (
        "r",
        "--per-device-train-batch-size=4",
        "--gradient-accumulation-steps",
        "2",
    )
    refused = Adjustments(refused=("--gradient_accumulation_steps",))
    made, spec = halved("r --per_device_train_batch_size 8", adjustments=refused)
    assert spec.command == "r --per_device_train_batch_size 4"
    assert not made.effective_kept


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("megatron --micro-batch-size 8 --global-batch-size 64", True),
        ("lora --micro_batch_size 8 --batch_size 64", True),
        ("t --batch-size 8", False),
    ],
)
def test_who_keeps_the_effective_batch(command, kept):
    assert halved(command)[0].effective_kept is kept


@pytest.mark.parametrize(
    "command",
    [
        "t",
        "t --batch-size 1",
        "t --batch-size x",
        "t --batch-size auto",
        "t --bs 0",
        "t --bs 99999999999",
    ],
)
def test_nothing_to_reduce(command):
    assert batch.smaller(JobSpec("j", command), Adjustments()) is None


@given(some.integers(2, 5000), some.integers(1, 64))
def test_the_effective_batch_is_exact(size, times):
    after, accumulated = batch.split(size, times)
    assert 1 <= after <= size // 2
    assert after * accumulated == size * times


def test_the_scale_for_code_that_asks():
    made, change = batch.scaled(Adjustments())
    assert (made.batch_scale, change.before, change.after) == (0.5, 1.0, 0.5)
    for _ in range(9):
        made, _ = batch.scaled(made)
    assert batch.scaled(made) is None


def test_adjustments_are_kept_whole():
    made, _ = halved("r --per_device_train_batch_size 8")
    assert from_mapping(as_mapping(made.adjustments)) == made.adjustments
    assert from_mapping(None) == Adjustments()
    assert made.adjustments.settings
    assert Adjustments().settings == ""


def test_a_truth_and_a_number():
    spec = JobSpec("j", "t --pin_memory True --lr 1e-3", params={"gradient_checkpointing": False})
    assert knobs.find(spec, Role.PIN_MEMORY).truth is True
    assert knobs.find(spec, Role.RECOMPUTE).truth is False
    assert knobs.find(spec, Role.RECOMPUTE).whole is None
    assert knobs.find(spec, Role.LEARNING_RATE).number == 0.001
    assert knobs.find(spec, Role.WORKERS) is None
