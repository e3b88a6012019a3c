"""When a process is made to wait on a node, and when not; and what a start looks at before."""

from __future__ import annotations

import pytest

from runyard.ray_bridge.node_process import age_s, is_fresh
from runyard.ray_bridge.starting import _has_room
from runyard.ray_bridge.warm_workers import WarmWorkers
from yards import until


def workers(**cpus):
    return WarmWorkers(lambda: {node: {"CPU": count} for node, count in cpus.items()})


def test_after_a_fresh_process_one_is_wanted():
    warm = workers(a=2)
    warm.used("a", fresh=True)
    assert warm._can_work()


def test_the_stock_that_ray_keeps_itself_is_left_alone():
    warm = workers(a=2)
    warm.used("a", fresh=False)
    assert not warm._can_work()


def test_one_of_our_making_is_replaced_when_it_is_used():
    warm = workers(a=2)
    warm._made.add("a")
    warm.used("a", fresh=False)
    assert warm._can_work()
    assert warm._made == set()


def test_nothing_is_made_while_something_starts():
    warm = workers(a=2)
    warm.used("a", fresh=True)
    with warm.starting(), warm.starting():
        assert not warm._can_work()
    assert warm._can_work()


def test_a_node_without_a_free_cpu_is_looked_at_again_when_something_leaves_it():
    """Ray would end what waits there."""
    warm = workers(a=0.5, b=1)
    assert warm._with_room({"a", "b", "gone"}) == {"b"}
    warm.left(["b", ""])
    assert not warm._can_work()
    warm.left(["a"])
    until(warm._can_work, 30)


def test_a_process_that_waited_is_older_than_the_question():
    assert is_fresh(0.5, 0.5)
    assert not is_fresh(9.0, 0.02)
    assert age_s() > 0


@pytest.mark.parametrize(
    ("nodes", "fits"),
    [
        (["a"], True),
        (["b"], False),
        (["a", "c"], True),
        (["a", "a"], False),
        (["a", "b"], False),
        (["gone"], False),
        ([""], True),
        (["", ""], True),
        (["", "", ""], False),
    ],
)
def test_room_for_every_slice_or_none(nodes, fits):
    free = {
        "a": {"CPU": 3.0, "GPU": 1.0},
        "b": {"CPU": 8.0},
        "c": {"CPU": 2.0, "GPU": 4.0},
    }
    assert _has_room(free, nodes, {"CPU": 2.0, "GPU": 1.0}) is fits
