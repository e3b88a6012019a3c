"""The field `distributed` of a job, and what it must not be put together with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from runyard.domain import distributed, job
from runyard.wire import job_types as types
from runyard.wire import refusals

MOST_NODES = 4096
MOST_RANKS_OF_A_NODE = 256


class JobDistributed(BaseModel):
    """How many ranks a job has and who starts them. Resources are those of one node."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: Annotated[int, types.NotBool, Field(ge=1, le=MOST_NODES)] = 1
    procs_per_node: Annotated[int, types.NotBool, Field(ge=1, le=MOST_RANKS_OF_A_NODE)] = 1
    launcher: Annotated[Literal["env", "torchrun"], types.Lowered] = "env"
    placement: Annotated[Literal["pack", "spread"], types.Lowered] = "pack"
    gang_grace_s: types.Grace | None = None
    finish_skew_s: types.Seconds | None = None

    def to_spec(self) -> distributed.Distributed:
        return distributed.Distributed(
            nodes=self.nodes,
            procs_per_node=self.procs_per_node,
            launcher=self.launcher,
            placement=self.placement,
            gang_grace_s=self.gang_grace_s,
            finish_skew_s=self.finish_skew_s,
        )


class Asked(Protocol):
    @property
    def command(self) -> str | tuple[str, ...]: ...
    @property
    def job_type(self) -> job.JobType | None: ...
    @property
    def distributed(self) -> JobDistributed | None: ...
    @property
    def image(self) -> str | None: ...
    @property
    def tty(self) -> bool | None: ...
    @property
    def isolation(self) -> str | None: ...


def problems(asked: Asked, where: str) -> list[dict[str, str]]:
    """What does not go together with the ranks that a job asks for, or lacks."""
    return [refusals.field(where + name, code, words) for name, code, words in _problems(asked)]


def _problems(asked: Asked) -> Iterator[tuple[str, str, str]]:
    shape = asked.distributed
    if shape is None:
        if asked.job_type is job.JobType.DISTRIBUTED:
            yield "distributed", "missing", "a distributed job says how many ranks it has: " + _SAY
        return
    if asked.job_type is job.JobType.SINGLE:
        words = "a job with distributed is of type distributed: leave job_type out"
        yield "job_type", "bad_value", words
    by_command = distributed.launched_by(asked.command)
    if by_command == "torchrun" and shape.launcher == "torchrun":
        words = "begins with torchrun, which is started for you: give the program, python train.py"
        yield "command", "bad_value", words
    elif by_command and shape.launcher == "env" and shape.procs_per_node > 1:
        words = f"each of the ranks would start {by_command}: give the program itself, or set "
        yield "command", "bad_value", words + "procs_per_node to 1"
    if asked.image is not None and shape.launcher == "env" and shape.procs_per_node > 1:
        words = "a container runs one process: use torchrun, which starts the ranks inside"
        yield "distributed.launcher", "bad_value", words
    if asked.tty:
        yield "tty", "bad_value", "ranks have logs of their own, not a terminal"
    if asked.isolation == "strict" and shape.launcher == "env" and shape.procs_per_node > 1:
        words = "ranks in namespaces of their own cannot share memory: use launcher torchrun"
        yield "isolation", "bad_value", words


_SAY = "distributed: {nodes: 1, procs_per_node: 2}"
