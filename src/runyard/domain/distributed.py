"""Distributed jobs: how many ranks, what each is told, how torchrun is called for them."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LOCAL_ADDRESS = "127.0.0.1"
TOKEN = "RUNYARD_ATTEMPT_TOKEN"
METRICS_PER_RANK = "RUNYARD_METRICS_PER_RANK"

_SHELL = ("/bin/sh", "-c")
_PYTHON = re.compile(r"(?:\S*/)?(?:python[0-9.]*|pypy3?)")
_FLAG = re.compile(r"-[bBdEiIOPqsSuvx]+")
_FLAGS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_SEPARATORS = frozenset(";&|()\n")


@dataclass(frozen=True, slots=True)
class Distributed:
    """What a job says of its ranks; resources it asks for are those of one node."""

    nodes: int = 1
    procs_per_node: int = 1
    launcher: Literal["env", "torchrun"] = "env"
    placement: Literal["pack", "spread"] = "pack"
    gang_grace_s: float | None = None  # None: as the server is set
    finish_skew_s: float | None = None

    @property
    def world_size(self) -> int:
        return self.nodes * self.procs_per_node

    def first_rank(self, node_rank: int) -> int:
        return node_rank * self.procs_per_node


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where the ranks of one attempt find each other."""

    attempt_id: str
    address: str
    port: int


def rank_environment(
    shape: Distributed, meeting: Meeting, node_rank: int, local_rank: int
) -> dict[str, str]:
    """What torchrun would tell this rank; all of it, so that no library guesses the rest."""
    rank = shape.first_rank(node_rank) + local_rank
    world = str(shape.world_size)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": str(shape.procs_per_node),
        "NODE_RANK": str(node_rank),
        "GROUP_RANK": str(node_rank),
        "GROUP_WORLD_SIZE": str(shape.nodes),
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": world,
        "ROLE_NAME": "default",
        "MASTER_ADDR": meeting.address,
        "MASTER_PORT": str(meeting.port),
        "TORCHELASTIC_RUN_ID": meeting.attempt_id,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        # Rank 0 has to open the store where all meet: there is no agent that did.
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }


def metrics_file(path: str, rank: int) -> str:
    """Where a rank reports its metrics; the first has the attempt's own file."""
    if rank == 0:
        return path
    stem, dot, suffix = path.rpartition(".")
    return f"{stem}-rank-{rank}{dot}{suffix}"


def log_rank(shape: Distributed | None, rank: int) -> int:
    """The rank whose log has what this one says: of those that torchrun starts the first of their
    node."""
    if shape is None or shape.launcher == "env":
        return rank
    return rank - rank % shape.procs_per_node


def logged_ranks(shape: Distributed | None) -> range:
    """The ranks that have a log of their own."""
    if shape is None:
        return range(1)
    return range(0, shape.world_size, shape.procs_per_node if shape.launcher != "env" else 1)


def token(attempt_id: str, tag: int) -> str:
    """Tells ranks of this attempt from those of an earlier one that still run somewhere."""
    return hashlib.sha256(f"{attempt_id} {tag}".encode()).hexdigest()[:16]


def own_ports(granted: tuple[int, ...]) -> tuple[int, ...]:
    """Of the ports on the first node: those of the job and its services."""
    return granted[:-1]


def meeting_port(granted: tuple[int, ...]) -> int:
    """The port on the first node where the ranks meet: the last one there."""
    return granted[-1]


def torchrun_argv(
    argv: Sequence[str], shape: Distributed, meeting: Meeting, node_rank: int, address: str
) -> tuple[str, ...]:
    """The command as torchrun starts it on one node: by the command's own Python where it begins
    with one, so that it is the torch of its environment."""
    options = _options(shape, meeting, node_rank, address)
    words = tuple(argv)
    if words[:2] == _SHELL and len(words) == 3:
        inside = _in_shell(words[2].strip(), options)
        return inside or ("torchrun", *options, "--no-python", *words)
    if not words or not _PYTHON.fullmatch(words[0]):
        return ("torchrun", *options, "--no-python", *words)
    head = _python_words(words)
    if head == 0:
        return (words[0], "-m", "torch.distributed.run", *options, "--no-python", *words)
    return (*words[:head], "-m", "torch.distributed.run", *options, *words[head:])


def launched_by(command: str | Sequence[str]) -> str | None:
    """The launcher of several processes that a command begins with, if it does."""
    words = command.split(None, 1)[:1] if isinstance(command, str) else command
    name = words[0].rpartition("/")[2] if words else ""
    return name if name in _LAUNCHERS else None


def _options(
    shape: Distributed, meeting: Meeting, node_rank: int, address: str
) -> tuple[str, ...]:
    return (
        f"--nnodes={shape.nodes}",
        f"--nproc-per-node={shape.procs_per_node}",
        f"--node-rank={node_rank}",
        # The only one that keeps to the rank of the node: others sort nodes by their addresses.
        "--rdzv-backend=static",
        f"--rdzv-endpoint={meeting.address}:{meeting.port}",
        f"--rdzv-id={meeting.attempt_id}",
        "--max-restarts=0",
        f"--local-addr={address}",
    )


def _python_words(words: Sequence[str]) -> int:
    """How many words are the interpreter and its flags; 0 where torchrun cannot put itself between
    them and a script or module."""
    if not words or not _PYTHON.fullmatch(words[0]):
        return 0
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        if words[at] in _FLAGS_WITH_VALUE:
            at += 1
        elif not _FLAG.fullmatch(words[at]) and not words[at].startswith(("-W", "-X")):
            return 0  # -c, standard input, or an option that we do not know
        at += 1
    return at if at < len(words) else 0


def _in_shell(text: str, options: tuple[str, ...]) -> tuple[str, ...] | None:
    """The same inside a command for the shell, if that is a single one that begins with a Python;
    what comes behind stays as it was written."""
    try:
        words = shlex.split(text, comments=True)
        pieces = shlex.shlex(text, posix=True, punctuation_chars="".join(_SEPARATORS))
        pieces.whitespace = " \t\r"
        pieces.whitespace_split = True
        several = any(set(piece) <= _SEPARATORS for piece in pieces if piece)
    except ValueError:  # a quote that is not closed: the shell will say so
        return None
    head = _python_words(words)
    if several or head == 0:
        return None
    rest = text
    for word in words[:head]:
        if not rest.startswith(word):
            return None  # quoted
        rest = rest[len(word) :].lstrip()
    inserted = shlex.join((*words[:head], "-m", "torch.distributed.run", *options))
    return (*_SHELL, f"{inserted} {rest}")
