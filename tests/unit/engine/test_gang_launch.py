"""Distributed attempts as they are handed over: on this machine, and on several nodes."""

from dataclasses import replace

from runyard.domain import distributed
from runyard.domain.distributed import Distributed
from runyard.domain.job import Attempt, JobSpec, Service
from runyard.domain.job_environment import Facts
from runyard.domain.resources import GpuGrant, Request
from runyard.domain.slices import Slice
from runyard.domain.states import AttemptStatus
from runyard.engine.launch import gang_launch
from runyard.executors import supervisor_spec
from runyard.executors.base import Launch

ARGV = ("python", "train.py")


def facts_of(spec, attempt):
    facts = Facts(
        base={"PATH": "/bin"},
        spec=spec,
        job_ref="job-a",
        attempt_id=attempt.attempt_id,
        attempt_number=1,
        run_dir="/run",
        output_dir="/out",
        checkpoint_dir="/ckpt",
        cpu_milli=8000,
        ports=attempt.ports,
    )
    return gang_launch.own_facts(facts, attempt)


def attempt_with(**fields):
    return Attempt(
        attempt_id="job-a.1",
        job_id=1,
        number=1,
        status=AttemptStatus.STARTING,
        node_id="n",
        machine_id="m",
        boot_id="b",
        executor="local",
        request=Request(8000, 1000),
        tag=1 << 60,
        created_at=0.0,
        **fields,
    )


def spec_with(shape, **fields):
    return JobSpec("x", ARGV, distributed=shape, **fields)


def test_ranks_on_this_machine():
    """R30: the last port is where they meet; the job's own and its services' stay theirs."""
    service = Service("reward", "serve")
    spec = spec_with(
        Distributed(procs_per_node=4),
        request=Request(8000, 1000, port_count=2),
        services=(service,),
    )
    gpus = (GpuGrant("GPU-a", 0, 1000), GpuGrant("GPU-b", 1, 1000))
    attempt = attempt_with(ports=(38000, 38001, 38002), gpus=gpus)
    facts = facts_of(spec, attempt)
    assert (facts.ports, facts.cpu_milli) == ((38000, 38001), 2000)
    assert facts.gpu_uuids == ("GPU-a", "GPU-b")
    [part] = gang_launch.slices(facts, ARGV, attempt)
    assert (part.index, part.node, part.argv, part.gpu_ids) == (0, "", ARGV, ("GPU-a", "GPU-b"))
    assert [one.rank for one in part.ranks] == [0, 1, 2, 3]
    assert {one.env["MASTER_PORT"] for one in part.ranks} == {"38002"}
    assert part.env == {distributed.TOKEN: distributed.token("job-a.1", 1 << 60)}
    assert [one.env["RUNYARD_METRICS_FILE"] for one in part.ranks[:2]] == [
        "/run/metrics.jsonl",
        "/run/metrics-rank-1.jsonl",
    ]


def on_nodes():
    return attempt_with(
        ports=(38000, 38001),
        slices=(
            Slice(0, "m0", "node-0", "10.0.0.1", (GpuGrant("GPU-a", 0, 1000),), (38000, 38001)),
            Slice(1, "m1", "node-1", "10.0.0.2", (GpuGrant("GPU-z", 3, 1000),), (39000,)),
        ),
    )


def test_slices_on_several_nodes():
    """Each with the GPUs and ports of its node; all meet on the first."""
    spec = spec_with(Distributed(2, 2), request=Request(8000, 1000, port_count=1))
    attempt = on_nodes()
    facts = facts_of(spec, attempt)
    assert facts.ports == (38000,)
    first, second = gang_launch.slices(facts, ARGV, attempt)
    assert [one.rank for one in (*first.ranks, *second.ranks)] == [0, 1, 2, 3]
    assert {one.env["MASTER_ADDR"] for one in second.ranks} == {"10.0.0.1"}
    assert {one.env["MASTER_PORT"] for one in second.ranks} == {"38001"}
    assert second.env["CUDA_VISIBLE_DEVICES"] == "GPU-z"
    assert second.env["RUNYARD_PORT_0"] == "39000"
    assert "CUDA_VISIBLE_DEVICES" not in first.env
    assert (second.node, second.gpu_ids) == ("node-1", ("GPU-z",))


def test_one_torchrun_on_each_node():
    spec = spec_with(Distributed(2, 2, "torchrun"), request=Request(8000, 1000, port_count=1))
    attempt = on_nodes()
    first, second = gang_launch.slices(facts_of(spec, attempt), ARGV, attempt)
    assert first.ranks == second.ranks == ()
    assert "--node-rank=0" in first.argv
    assert "--local-addr=10.0.0.2" in second.argv
    assert "--rdzv-endpoint=10.0.0.1:38001" in second.argv
    assert first.env[distributed.METRICS_PER_RANK] == "1"
    assert (first.log_rank, second.log_rank) == (0, 2)


def test_a_single_job_is_as_before():
    attempt = attempt_with(ports=(38000,))
    facts = facts_of(spec_with(None), attempt)
    assert (facts.ports, facts.cpu_milli) == ((38000,), 8000)
    assert gang_launch.slices(facts, ARGV, attempt) == ()
    assert gang_launch.in_one_process(ARGV, {"A": "1"}, ()) == (ARGV, {"A": "1"})


def test_what_a_container_runs():
    """One process: torchrun, or the only rank."""
    attempt = attempt_with(ports=(38000,))
    for launcher, name in (("env", "RANK"), ("torchrun", distributed.METRICS_PER_RANK)):
        facts = facts_of(spec_with(Distributed(launcher=launcher)), attempt)
        parts = gang_launch.slices(facts, ARGV, attempt)
        argv, env = gang_launch.in_one_process(ARGV, {"A": "1"}, parts)
        assert argv == parts[0].argv
        assert env["A"] == "1"
        assert name in env


def test_what_a_supervisor_is_told():
    """Nothing of ranks for one process; of slices each its own part."""
    attempt = on_nodes()
    spec = spec_with(Distributed(2, 2), request=Request(8000, 1000, port_count=1))
    facts = facts_of(spec, attempt)
    plain = Launch("job-a.1", "job-a", 1 << 60, ARGV, {"A": "1", "B": "2"}, "/")
    assert not {"ranks", "gang_grace_s"} & supervisor_spec.build(plain).keys()
    launch = replace(plain, slices=gang_launch.slices(facts, ARGV, attempt), gang_grace_s=3.0)
    told = supervisor_spec.build(launch, slice_index=1)
    assert [one["rank"] for one in told["ranks"]] == [2, 3]
    assert (told["gang_grace_s"], told["finish_skew_s"]) == (3.0, 600.0)
    assert told["env"]["CUDA_VISIBLE_DEVICES"] == "GPU-z"
    assert told["env"]["A"] == "1"
