"""Ports, gates, order, estimates: the small rules of scheduling."""

from __future__ import annotations

import pytest

from runyard.domain.job import Priority
from runyard.domain.resources import Load, Request
from runyard.domain.scheduling import estimate
from runyard.domain.scheduling.gates import (
    ClosedGate,
    GateLimits,
    Gates,
    gate_values,
    is_closed,
    update_gates,
)
from runyard.domain.scheduling.port_choice import begin_after, choose_ports
from runyard.domain.scheduling.queue_order import QueueWalk, order_key
from runyard.domain.scheduling.view import ShapeView, WaitingJobView

# ports


def test_the_first_free_ports():
    """R55."""
    assert choose_ports(38000, 5, 2, {38000, 38002}) == (38001, 38003)
    assert choose_ports(38000, 5, 0, ()) == ()
    assert choose_ports(38000, 2, 3, ()) is None


def test_ports_that_somebody_else_may_need_are_left():
    assert choose_ports(38000, 5, 2, {38001}, keep=2) == (38000, 38002)
    assert choose_ports(38000, 5, 2, {38001}, keep=3) is None
    assert choose_ports(38000, 5, 2, {38001}, keep=2, begin=38004) == (38004, 38000)


@pytest.mark.parametrize(
    ("begin", "chosen"),
    [
        (38002, (38002, 38003)),
        (38004, (38004, 38000)),  # round to the start of the pool
        (38005, (38000, 38002)),  # behind its end
        (0, (38000, 38002)),
        (50000, (38000, 38002)),  # of a pool that was another one
    ],
)
def test_ports_are_taken_from_where_the_last_were(begin, chosen):
    """R55: what was just given back comes last."""
    assert choose_ports(38000, 5, 2, {38001}, begin=begin) == chosen


@pytest.mark.parametrize(
    ("ports", "begin", "after"),
    [
        ((), 38003, 38003),
        ((38000, 38001), 0, 38002),
        ((38003, 38004), 38003, 38005),
        ((38004, 38000), 38004, 38001),
        ((38000,), 38005, 38001),
        ((38003, 38004, 38003), 38003, 38005),  # on two machines
    ],
)
def test_the_next_choice_begins_behind_the_last(ports, begin, after):
    assert begin_after(ports, begin) == after


# gates


def test_a_gate_closes_above_its_limit_and_opens_with_hysteresis():
    """R12."""
    limits = GateLimits()
    gates = update_gates(Gates(), Load(90.0, 85.0, 90.0), limits)
    assert gates.closed == ()
    gates = update_gates(gates, Load(90.1, 50.0, 50.0), limits)
    assert gates.closed == (ClosedGate("cpu", 90.1, 90.0),)
    gates = update_gates(gates, Load(86.0, 50.0, 50.0), limits)
    assert gates.closed == (ClosedGate("cpu", 86.0, 90.0),)
    gates = update_gates(gates, Load(85.0, 50.0, 50.0), limits)
    assert gates.closed == ()


def test_all_gates_and_their_limits():
    gates = update_gates(Gates(), Load(99.0, 99.0, 99.0), GateLimits())
    assert [(gate.gate, gate.limit) for gate in gates.closed] == [
        ("cpu", 90.0),
        ("memory", 85.0),
        ("disk", 90.0),
    ]
    assert gate_values(Load(1.0, 2.0, 3.0), GateLimits())[1] == ("memory", 2.0, 85.0)


def test_a_limit_of_100_is_off():
    assert update_gates(Gates(), Load(100, 100, 100), GateLimits(100, 100, 100)).closed == ()


def test_a_limit_near_zero_can_open_again():
    assert is_closed(1.5, 2.0, was_closed=True)
    assert not is_closed(1.0, 2.0, was_closed=True)


def test_an_unknown_load_changes_nothing():
    gates = Gates((ClosedGate("cpu", 95.0, 90.0),))
    assert update_gates(gates, None, GateLimits()) is gates


# order


def test_order_keys():
    """R10."""
    keys = [
        order_key(Priority.HIGH, 9.0, 9),
        order_key(Priority.MEDIUM, 1.0, 5),
        order_key(Priority.MEDIUM, 2.0, 1),
        order_key(Priority.MEDIUM, 2.0, 2),
        order_key(Priority.LOW, 0.0, 0),
    ]
    assert keys == sorted(keys)


def test_a_shape_left_out_is_not_walked_further():
    def shape(number, *jobs):
        views = tuple(WaitingJobView(job, float(job)) for job in jobs)
        return ShapeView(number, Priority.LOW, Request(0, 0), views)

    walk = QueueWalk([shape(1, 1, 3, 5), shape(2, 2, 4), shape(3)])
    seen = []
    for found, job in walk:
        seen.append(job.job_id)
        if job.job_id == 3:
            walk.leave_out(found.id)
    assert seen == [1, 2, 3, 4]


# estimated start


def test_a_free_slot_means_now():
    assert estimate.start(now=5.0, ahead=0, running=[], slots=1) == (5.0, 5.0)
    assert estimate.start(now=5.0, ahead=1, running=[(0.0, None)], slots=3) == (5.0, 5.0)


def test_nothing_known_nothing_claimed():
    assert estimate.start(now=5.0, ahead=1, running=[(0.0, None)], slots=1) == (None, None)
    assert estimate.start(now=5.0, ahead=0, running=[], slots=0) == (None, None)


def test_time_outs_bound_from_above():
    running = [(0.0, 100.0), (10.0, 200.0)]
    assert estimate.start(now=50.0, ahead=0, running=running, slots=2) == (50.0, 100.0)
    # the job ahead has no time-out: it may take for ever, but another slot ends
    assert estimate.start(now=50.0, ahead=1, running=running, slots=2) == (50.0, 210.0)
    assert estimate.start(now=50.0, ahead=2, running=running, slots=2) == (50.0, None)
    known = estimate.start(now=50.0, ahead=2, running=running, slots=2, ahead_s=[30.0, 40.0])
    assert known == (50.0, 170.0)


def test_typical_durations_bound_from_both_sides():
    low, high = estimate.start(now=0.0, ahead=2, running=[(0.0, None)], slots=1, typical_s=100.0)
    assert (low, high) == (150.0, 600.0)


def test_an_attempt_past_its_time_or_not_yet_started():
    assert estimate.start(now=500.0, ahead=0, running=[(0.0, 10.0)], slots=1) == (500.0, 500.0)
    assert estimate.start(now=500.0, ahead=0, running=[(None, 10.0)], slots=1) == (500.0, 510.0)


def test_more_running_than_slots():
    running = [(0.0, 10.0), (0.0, 20.0), (0.0, 30.0)]
    assert estimate.start(now=0.0, ahead=0, running=running, slots=1) == (0.0, 30.0)


def test_what_runs_says_itself_when_it_will_end():
    running = [(0.0, None), (0.0, None)]
    told = [(100.0, 140.0), None]
    soon = estimate.start(now=50.0, ahead=0, running=running, slots=2, forecasts=told)
    assert soon == (50.0, 140.0), "the other one may end at any time"
    both = [(100.0, 140.0), (80.0, 300.0)]
    assert estimate.start(now=50.0, ahead=0, running=running, slots=2, forecasts=both) == (
        80.0,
        140.0,
    )
    later = estimate.start(now=50.0, ahead=1, running=running, slots=2, forecasts=both)
    assert later == (80.0, 300.0), "nobody knows how long the one before takes"
    assert estimate.start(now=50.0, ahead=2, running=running, slots=2, forecasts=both)[1] is None


def test_a_time_out_ends_what_thinks_that_it_runs_longer():
    told = [(500.0, 900.0)]
    found = estimate.start(now=50.0, ahead=0, running=[(0.0, 100.0)], slots=1, forecasts=told)
    assert found == (100.0, 100.0)


def test_the_work_is_bounded():
    far = estimate.MOST_AHEAD * 10
    low, high = estimate.start(now=0.0, ahead=far, running=[(0.0, 1.0)], slots=2, typical_s=2.0)
    assert low == pytest.approx(estimate.MOST_AHEAD / 2, abs=2)
    assert high is None
