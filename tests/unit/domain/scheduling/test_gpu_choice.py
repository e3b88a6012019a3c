"""Which GPUs a job gets."""

from __future__ import annotations

import pytest

from runyard.domain.resources import Gpu, Holder, Request
from runyard.domain.scheduling.gpu_choice import choose_gpus, group_count, matches_type


def gpus(*groups, name="H100"):
    """GPUs by group: gpus("a", "a", "b") is two of group a and one of b."""
    return [Gpu(i, f"GPU-{i}", name, 80000, group) for i, group in enumerate(groups)]


def whole(count, gpu_type=None):
    return Request(0, 0, count * 1000, gpu_type)


def indexes(grants):
    return None if grants is None else [grant.index for grant in grants]


@pytest.mark.parametrize(
    ("wanted", "name", "same"),
    [
        ("RTX 4090", "NVIDIA GeForce RTX 4090", True),
        ("rtx4090", "NVIDIA GeForce RTX 4090", True),
        ("4090", "NVIDIA GeForce RTX 4090", True),
        ("rtx-4090", "NVIDIA GeForce RTX 4090", True),
        ("GeForceRTX4090", "NVIDIA GeForce RTX 4090", True),
        ("RTX 4080", "NVIDIA GeForce RTX 4090", False),
        ("RTX 409", "NVIDIA GeForce RTX 4090", False),
        ("A100", "NVIDIA A100-SXM4-80GB", True),
        ("a100 80gb", "NVIDIA A100-SXM4-80GB", True),
        ("A100-40GB", "NVIDIA A100-SXM4-80GB", False),
        ("A10", "NVIDIA A100-SXM4-80GB", False),
        ("L4", "NVIDIA L40", False),
        ("h200", "NVIDIA H200", True),
        ("", "NVIDIA H200", False),
        ("--", "NVIDIA H200", False),
        (None, "anything", True),
    ],
)
def test_type_names(wanted, name, same):
    assert matches_type(wanted, name) is same


def test_none_wanted():
    assert choose_gpus(gpus("a"), whole(0), {}) == ()


def test_the_tightest_group_that_fits():
    assert indexes(choose_gpus(gpus("a", "a", "a", "b", "b"), whole(2), {})) == [3, 4]


def test_equal_groups_go_by_index():
    assert indexes(choose_gpus(gpus("b", "a", "b", "a"), whole(2), {})) == [0, 2]


def test_fewest_groups_when_one_is_not_enough():
    chosen = choose_gpus(gpus("a", "b", "b", "c", "c", "c"), whole(4), {})
    # three of c and the single one of a, so that the pair in b stays whole
    assert indexes(chosen) == [0, 3, 4, 5]


def test_all_of_them():
    assert indexes(choose_gpus(gpus("a", "b", "c"), whole(3), {})) == [0, 1, 2]
    assert choose_gpus(gpus("a", "b", "c"), whole(4), {}) is None


def test_taken_and_kept_gpus_are_left_alone():
    four = gpus("a", "a", "a", "a")
    chosen = choose_gpus(four, whole(2), {"GPU-0": 250}, kept={"GPU-1": 1000})
    assert indexes(chosen) == [2, 3]


@pytest.mark.parametrize(
    "trouble",
    [{"fenced": True}, {"locked_by_other_server": True}, {"holders": (Holder(1, "eve", "x"),)}],
)
def test_gpus_we_may_not_use(trouble):
    bad = Gpu(0, "GPU-0", "H100", 1, **trouble)
    assert choose_gpus([bad], whole(1), {}) is None
    assert choose_gpus([bad], Request(0, 0, 100), {}) is None
    assert indexes(choose_gpus([bad], whole(1), {}, allowed=lambda _: True)) == [0]


def test_a_type_is_respected():
    mixed = [Gpu(0, "GPU-0", "NVIDIA T4", 1), Gpu(1, "GPU-1", "NVIDIA A100", 1)]
    assert indexes(choose_gpus(mixed, whole(1, "a100"), {})) == [1]
    assert choose_gpus(mixed, whole(2, "a100"), {}) is None


def test_without_a_type_equal_gpus_are_preferred():
    mixed = [
        Gpu(0, "GPU-0", "T4", 1, "a"),
        Gpu(1, "GPU-1", "A100", 1, "a"),
        Gpu(2, "GPU-2", "T4", 1, "b"),
    ]
    assert indexes(choose_gpus(mixed, whole(2), {})) == [0, 2]
    assert indexes(choose_gpus(mixed, whole(3), {})) == [0, 1, 2]


def test_shares_fill_the_fullest_gpu_that_still_fits():
    three = gpus("a", "a", "a")
    used = {"GPU-0": 300, "GPU-1": 600}
    assert indexes(choose_gpus(three, Request(0, 0, 400), used)) == [1]
    assert indexes(choose_gpus(three, Request(0, 0, 500), used)) == [0]
    assert indexes(choose_gpus(three, Request(0, 0, 900), used)) == [2]
    used = {"GPU-0": 300, "GPU-1": 600, "GPU-2": 200}
    assert choose_gpus(three, Request(0, 0, 900), used) is None


def test_a_fresh_gpu_is_broken_up_in_the_smallest_group():
    assert indexes(choose_gpus(gpus("a", "a", "b"), Request(0, 0, 500), {})) == [2]


def test_groups_touched():
    three = gpus("a", "b", "b")
    assert group_count(three, choose_gpus(three, whole(3), {})) == 2
    assert group_count(three, ()) == 0
