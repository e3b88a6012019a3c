"""What is ours in a Ray cluster, by name. Names are compared whole, never by how they begin:
`job_1_a1` is not `job_12_a1`.
"""

from __future__ import annotations

import re

NAMESPACE = "runyard"
_ACTOR = re.compile(r"job_(?P<job>.+)_a(?P<number>\d+)_n(?P<slice>\d+)")
_GROUP = re.compile(r"job_(?P<job>.+)_a(?P<number>\d+)")


def group_name(attempt_id: str) -> str:
    """The placement group of an attempt (`<job id>.<number>`)."""
    job, _, number = attempt_id.rpartition(".")
    return f"job_{job}_a{number}"


def actor_name(attempt_id: str, index: int) -> str:
    return f"{group_name(attempt_id)}_n{index}"


def attempt_of_actor(name: str) -> str | None:
    """The attempt that an actor of this name belongs to; None where it is none of ours."""
    found = _ACTOR.fullmatch(name)
    return f"{found['job']}.{found['number']}" if found else None


def attempt_of_group(name: str) -> str | None:
    found = _GROUP.fullmatch(name)
    return f"{found['job']}.{found['number']}" if found else None
