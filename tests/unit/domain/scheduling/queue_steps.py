"""What happens to a simulated yard, drawn at random: jobs come, jobs end, time goes by."""

from __future__ import annotations

from hypothesis import strategies as st

from runyard.domain.job import Priority

GPU_MODELS = ("NVIDIA H100", "NVIDIA A100-SXM4-80GB")
SELDOM = st.sampled_from([False, False, False, True])

priorities = st.sampled_from(list(Priority))
_ends = st.tuples(st.just("end"), st.integers(0, 1000))
_waits = st.tuples(st.just("wait"), st.sampled_from([1.0, 60.0, 500.0]))


def step_lists(requests, **more):
    """`more` has a strategy for each thing that a submit says besides priority and request."""
    job = st.fixed_dictionaries({"priority": priorities, "request": requests, **more})
    submits = st.tuples(st.just("submit"), job)
    return st.lists(st.one_of(submits, submits, _ends, _waits), min_size=1, max_size=25)


def take(yard, steps):
    """One after the other, with a pass after each."""
    for name, value in steps:
        if name == "submit":
            yard.submit(**value)
        elif name == "end" and yard.running:
            yard.end(sorted(yard.running)[value % len(yard.running)])
        elif name == "wait":
            yard.now += value
        yard.one_pass()


def submit_all(yard, steps):
    """Only the jobs that come, at once and before any pass."""
    for name, value in steps:
        if name == "submit":
            yard.submit(**value)
