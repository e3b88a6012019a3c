"""`distributed` of a job: what it means, and what is refused with the right words."""

import pytest

from runyard.domain import errors
from runyard.domain.distributed import Distributed
from runyard.domain.job import JobType
from runyard.wire.jobs import read_job

TWO = {"procs_per_node": 2}


def spec(**fields):
    return read_job({"command": ["python", "train.py"], **fields}).to_submission().spec


def refused(**fields):
    with pytest.raises(errors.InvalidJob) as caught:
        spec(**fields)
    return [(one["field"], one["code"]) for one in caught.value.params["fields"]]


def nearest(**fields):
    with pytest.raises(errors.UnknownField) as caught:
        spec(**fields)
    return caught.value.params["nearest"]


def test_it_makes_the_job_a_distributed_one():
    """R30"""
    made = spec(distributed={})
    assert made.job_type is JobType.DISTRIBUTED
    assert made.distributed == Distributed(1, 1, "env", "pack")
    assert spec().job_type is JobType.SINGLE
    assert spec().distributed is None


def test_all_of_its_fields():
    asked = {
        "nodes": 3,
        "procs_per_node": 4,
        "launcher": "TORCHRUN",
        "placement": "spread",
        "gang_grace_s": 0,
        "finish_skew_s": 30,
    }
    made = spec(distributed=asked, job_type="distributed").distributed
    assert made == Distributed(3, 4, "torchrun", "spread", 0.0, 30.0)
    assert made.world_size == 12


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"distributed": {"nodes": 0}}, "distributed.nodes", "out_of_range"),
        ({"distributed": {"nodes": True}}, "distributed.nodes", "wrong_type"),
        ({"distributed": {"procs_per_node": 257}}, "distributed.procs_per_node", "out_of_range"),
        ({"distributed": {"launcher": "mpi"}}, "distributed.launcher", "bad_value"),
        ({"distributed": {"placement": "near"}}, "distributed.placement", "bad_value"),
        ({"distributed": {"finish_skew_s": 0}}, "distributed.finish_skew_s", "out_of_range"),
        ({"job_type": "distributed"}, "distributed", "missing"),
        ({"job_type": "single", "distributed": TWO}, "job_type", "bad_value"),
        ({"tty": True, "distributed": TWO}, "tty", "bad_value"),
        ({"isolation": "strict", "distributed": TWO}, "isolation", "bad_value"),
        ({"command": "torchrun train.py", "distributed": TWO}, "command", "bad_value"),
        ({"command": ["/v/bin/accelerate", "x"], "distributed": TWO}, "command", "bad_value"),
    ],
)
def test_what_is_refused(fields, field, code):
    assert refused(**fields) == [(field, code)]


def test_torchrun_is_not_started_twice():
    shape = {"launcher": "torchrun", "procs_per_node": 2}
    assert refused(command=["torchrun", "x.py"], distributed=shape) == [("command", "bad_value")]
    assert spec(command="torchrun x.py", distributed={}).distributed is not None


def test_strict_isolation_goes_with_one_process_on_a_node():
    shape = {"launcher": "torchrun", "procs_per_node": 2}
    assert spec(isolation="strict", distributed=shape).isolation == "strict"


def test_names_from_elsewhere_lead_to_the_right_ones():
    assert nearest(distributed={"nproc_per_node": 2}) == "procs_per_node"
    assert nearest(distributed={"nnodes": 2}) == "nodes"
    assert nearest(distributed={"lancher": "env"}) == "launcher"
    assert nearest(nodes=2) == "distributed.nodes"
    assert nearest(procs_per_node=2) == "distributed.procs_per_node"
