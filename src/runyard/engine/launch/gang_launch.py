"""The slices and ranks of a distributed attempt, as its executor starts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from runyard.domain import distributed, job_environment
from runyard.domain.distributed import Distributed, Meeting
from runyard.domain.job import Attempt
from runyard.domain.job_environment import Facts
from runyard.domain.slices import Slice
from runyard.executors.base import RankLaunch, SliceLaunch


def own_facts(facts: Facts, attempt: Attempt) -> Facts:
    """What the environment of the whole attempt is made of: that of its first slice, with the
    threads of a node divided over its ranks."""
    shape = facts.spec.distributed
    if shape is None:
        return facts
    first = _parts(attempt)[0]
    return replace(
        facts,
        cpu_milli=facts.cpu_milli // shape.procs_per_node,
        gpu_uuids=tuple(grant.uuid for grant in first.gpus),
        ports=distributed.own_ports(first.ports),
    )


def slices(facts: Facts, argv: tuple[str, ...], attempt: Attempt) -> tuple[SliceLaunch, ...]:
    """None of a job of one process on this machine. `facts` are those of `own_facts`."""
    shape = facts.spec.distributed
    if shape is None:
        return tuple(
            SliceLaunch(part.index, part.node, argv, {}, (), facts.gpu_uuids, part.ports)
            for part in attempt.slices
        )
    parts = _parts(attempt)
    port = distributed.meeting_port(parts[0].ports)
    meeting = Meeting(attempt.attempt_id, parts[0].address, port)
    shared = job_environment.build(facts)
    token = distributed.token(attempt.attempt_id, attempt.tag)
    return tuple(
        SliceLaunch(
            index=part.index,
            node=part.node,
            argv=_argv(argv, shape, meeting, part),
            env={distributed.TOKEN: token, **_own(facts, shared, part), **_launcher(shape)},
            ranks=_ranks(facts, shape, meeting, part.index),
            gpu_ids=tuple(grant.uuid for grant in part.gpus),
            ports=part.ports,
            log_rank=shape.first_rank(part.index) if shape.launcher == "torchrun" else 0,
        )
        for part in parts
    )


def in_one_process(
    argv: tuple[str, ...], env: Mapping[str, str], parts: Sequence[SliceLaunch]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """What a container runs, whose one process is the launcher or the only rank of the node."""
    if not parts:
        return argv, dict(env)
    first = parts[0]
    of_rank = first.ranks[0].env if first.ranks else {}
    return first.argv, {**env, **first.env, **of_rank}


def _parts(attempt: Attempt) -> Sequence[Slice]:
    """Of an attempt on this machine one, which reaches itself by the loopback."""
    if attempt.slices:
        return attempt.slices
    here = distributed.LOCAL_ADDRESS
    return (Slice(0, attempt.machine_id, "", here, attempt.gpus, attempt.ports),)


def _argv(
    argv: tuple[str, ...], shape: Distributed, meeting: Meeting, part: Slice
) -> tuple[str, ...]:
    if shape.launcher == "env":
        return argv
    return distributed.torchrun_argv(argv, shape, meeting, part.index, part.address)


def _own(facts: Facts, shared: Mapping[str, str], part: Slice) -> dict[str, str]:
    """Where a further slice's environment differs: other GPUs, other ports."""
    if part.index == 0:
        return {}
    uuids = tuple(grant.uuid for grant in part.gpus)
    built = job_environment.build(replace(facts, gpu_uuids=uuids, ports=part.ports))
    return {name: value for name, value in built.items() if shared.get(name) != value}


def _launcher(shape: Distributed) -> dict[str, str]:
    return {distributed.METRICS_PER_RANK: "1"} if shape.launcher == "torchrun" else {}


def _ranks(
    facts: Facts, shape: Distributed, meeting: Meeting, node_rank: int
) -> tuple[RankLaunch, ...]:
    """None where torchrun starts them."""
    if shape.launcher == "torchrun":
        return ()
    first = shape.first_rank(node_rank)
    file = job_environment.metrics_file(facts)
    return tuple(
        RankLaunch(
            rank=first + local,
            local_rank=local,
            env={
                **distributed.rank_environment(shape, meeting, node_rank, local),
                "RUNYARD_METRICS_FILE": distributed.metrics_file(file, first + local),
            },
        )
        for local in range(shape.procs_per_node)
    )
