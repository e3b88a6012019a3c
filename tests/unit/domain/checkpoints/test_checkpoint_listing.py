"""Checkpoints in a listing: their kinds, their steps, and what is not one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from runyard.domain.checkpoints import step_names
from runyard.domain.checkpoints.listing import Kind, Listed, find


def listed(*paths, size=10):
    return [
        Listed(*path) if isinstance(path, tuple) else Listed(path, size, float(place))
        for place, path in enumerate(paths)
    ]


def seen(*paths, pattern=None):
    return [(one.path, one.kind.value, one.step) for one in find(listed(*paths), pattern)]


@pytest.mark.parametrize(
    ("path", "step", "epoch"),
    [
        ("checkpoint-500", 500, None),
        ("out/checkpoint-1500/model.safetensors", 1500, None),
        ("epoch=3-step=1200.ckpt", 1200, 3),
        ("epoch=3-step=1200-val_loss=0.31.ckpt", 1200, 3),
        ("global_step100", 100, None),
        ("iter_0000100", 100, None),
        ("step_42.pt", 42, None),
        ("model_000999.pth", 999, None),
        ("ckpt-7.index", 7, None),
        ("ckpt_7.pt", 7, None),
        ("checkpoint_step_300.pt", 300, None),
        ("epoch_5.pt", None, 5),
        ("epoch5.pth", None, 5),
        ("model_epoch_12.pt", None, 12),
        ("3000", 3000, None),
        ("3000/default", 3000, None),
        ("last.ckpt", None, None),
        ("best.pt", None, None),
        ("net-250.pt", 250, None),
        ("model-00001-of-00003.safetensors", None, None),
        ("yolov8n.pt", None, None),
        ("Step-12.PT", 12, None),
    ],
)
def test_steps_of_names(path, step, epoch):
    """R19"""
    assert step_names.read(path) == (step, epoch)


def test_huggingface():
    """R19"""
    assert seen(
        "checkpoint-500/model.safetensors",
        "checkpoint-500/optimizer.pt",
        "checkpoint-500/rng_state.pth",
        "checkpoint-500/trainer_state.json",
        "checkpoint-1000/model.safetensors",
        "checkpoint-1000/optimizer.pt",
    ) == [
        ("checkpoint-500", "huggingface", 500),
        ("checkpoint-1000", "huggingface", 1000),
    ]


def test_huggingface_in_shards():
    whole = ["c/checkpoint-5/trainer_state.json", "c/checkpoint-5/model.safetensors.index.json"]
    whole += [f"c/checkpoint-5/model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]
    assert seen(*whole) == [("c/checkpoint-5", "huggingface", 5)]
    assert seen(*whole[:-1]) == [("c/checkpoint-5", "huggingface", 5)], "whole or not"


def test_lightning():
    assert seen(
        "lightning_logs/version_0/checkpoints/epoch=1-step=20.ckpt",
        "last.ckpt",
        "epoch=2-step=30.ckpt/checkpoint/mp_rank_00_model_states.pt",
        "epoch=2-step=30.ckpt/latest",
    ) == [
        ("lightning_logs/version_0/checkpoints/epoch=1-step=20.ckpt", "lightning", 20),
        ("last.ckpt", "lightning", None),
        ("epoch=2-step=30.ckpt", "lightning", 30),
    ]


def test_files():
    assert seen("step_10.pt", "model_20.pth", ("x/40.safetensors", 0, 9.0), "m.keras", "w.h5") == [
        ("step_10.pt", "torch", 10),
        ("model_20.pth", "torch", 20),
        ("m.keras", "keras", None),
        ("w.h5", "keras", None),
        ("x/40.safetensors", "safetensors", None),
    ]


def test_sharded_safetensors():
    shards = [f"step-9/model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    index = "step-9/model.safetensors.index.json"
    assert seen(*shards, index) == [("step-9", "sharded_safetensors", 9)]
    assert seen(shards[0], index) == [("step-9", "sharded_safetensors", 9)]
    assert seen(*shards) == [("step-9", "sharded_safetensors", 9)]
    root = ["model-00001-of-00001.safetensors", "model.safetensors.index.json"]
    assert seen(*root) == [("model.safetensors.index.json", "sharded_safetensors", None)]


def test_other_frameworks():
    assert seen(
        "100/default/_METADATA",
        "100/default/ocdbt.process_0/d/1",
        "100/_CHECKPOINT_METADATA",
        "200.orbax-checkpoint-tmp-17/default/x",
        "ckpt-3.index",
        "ckpt-3.data-00000-of-00001",
        "ckpt-4.data-00000-of-00002",
        "export/saved_model.pb",
        "export/variables/variables.data-00000-of-00001",
        "global_step7/mp_rank_00_model_states.pt",
        "iter_0000009/mp_rank_00/model_optim_rng.pt",
        "dcp_5/.metadata",
        "dcp_5/__0_0.distcp",
        "dcp_6/__0_0.distcp",
    ) == [
        ("100", "orbax", 100),
        ("ckpt-3", "tensorflow", 3),
        ("ckpt-4", "tensorflow", 4),
        ("export", "tensorflow", None),
        ("global_step7", "deepspeed", 7),
        ("iter_0000009", "megatron", 9),
        ("dcp_5", "distributed", 5),
        ("dcp_6", "distributed", 6),
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".partial-12-1-step_5.pt",
        "tmp-checkpoint-500/model.safetensors",
        "step_5.pt.tmp",
        "step_5.pt.manifest.json",
        "config.json",
        "training_args.bin",
        "optimizer.pt",
        "rng_state_0.pth",
        "events.out.tfevents.17",
        "checkpoint",
        "train.log",
    ],
)
def test_what_is_not_one(path):
    assert seen(path) == []


def test_the_pattern_of_a_job():
    paths = ["a/step_1.pt", "b/step_2.pt", "model.custom", "state/one.bin2", "state/two.bin2"]
    assert seen(*paths, pattern="*.pt") == [
        ("a/step_1.pt", "torch", 1),
        ("b/step_2.pt", "torch", 2),
    ]
    assert seen(*paths, pattern="b/*") == [("b/step_2.pt", "torch", 2)]
    assert seen(*paths, pattern="*.custom") == [("model.custom", "other", None)]
    assert seen(*paths, pattern="state") == [("state", "other", None)]
    assert seen("checkpoint-5/trainer_state.json", pattern="checkpoint-*") == [
        ("checkpoint-5", "huggingface", 5)
    ]


def test_size_and_time_of_all_parts():
    [found] = find([Listed("checkpoint-1/a", 5, 1.0), Listed("checkpoint-1/b", 7, 9.0)])
    assert (found.size, found.mtime, found.parts) == (
        12,
        9.0,
        ("checkpoint-1/a", "checkpoint-1/b"),
    )


@settings(deadline=None)
@given(
    some.lists(
        some.builds(
            Listed,
            some.text(alphabet="ab/.-_=0123checkpointstepof", max_size=40),
            some.integers(0, 5),
            some.floats(0, 9),
        ),
        max_size=20,
    )
)
def test_any_listing_is_read(files):
    found = find(files)
    parts = [part for one in found for part in one.parts]
    assert {one.kind for one in found} <= set(Kind)
    assert set(parts) <= {file.path for file in files}


def test_a_large_listing_takes_a_moment():
    files = listed(*(f"run/checkpoint-{n}/part-{m}" for n in range(1000) for m in range(20)))
    before = time.process_time()
    assert len(find(files)) == 1000
    assert time.process_time() - before < 10
