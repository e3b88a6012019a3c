"""Peers that are asked to cancel the tree of six, each through a script of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peers
from tree_of_six import Tree

SCRIPTS = Path(__file__).resolve().parent / "peer_scripts"
FREEZER = Path("/sys/fs/cgroup/freezer")


@dataclass(frozen=True)
class Kind:
    """`words` come after the interpreter; `needs` are programs without which it cannot run."""

    name: str
    words: tuple[str, ...]
    needs: tuple[str, ...] = ()
    python: str = ""  # the name of its own environment
    root: bool = False
    freezer: bool = False


SLURM_NEEDS = ("slurmctld", "slurmd", "sbatch", "munged")
SLURM_CGROUP = Kind(
    "slurm, cgroup", ("slurm_cancel.py", "cgroup"), SLURM_NEEDS, root=True, freezer=True
)
KINDS = (
    Kind("task-spooler", ("tsp_cancel.py",), ("tsp",)),
    SLURM_CGROUP,
    Kind("slurm, pgid", ("slurm_cancel.py", "pgid"), SLURM_NEEDS, root=True),
    Kind("slurm, linuxproc", ("slurm_cancel.py", "linuxproc"), SLURM_NEEDS, root=True),
    Kind("ray jobs", ("ray_cancel.py",), python="ray"),
    Kind("celery", ("celery_cancel.py",), ("redis-server",), python="celery"),
)


def interpreter(kind: Kind) -> Path | None:
    """What runs the script; None if the peer is not installed or cannot run here."""
    if any(shutil.which(name) is None for name in kind.needs):
        return None
    if (kind.root and os.geteuid() != 0) or (kind.freezer and not os.access(FREEZER, os.W_OK)):
        return None
    return peers.python_of(kind.python) if kind.python else Path(sys.executable)


class Peer:
    """A running peer; leaving `running` ends it with everything that it started."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _ask(self, **asked: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self.told()

    def told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("the peer's script has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def submit(self, command: list[str]) -> str:
        return str(self._ask(do="submit", command=command)["ref"])

    def cancel(self, ref: str) -> None:
        self._ask(do="cancel", ref=ref)

    def cancel_by_library(self, ref: str) -> None:
        self._ask(do="cancel by library", ref=ref)

    def state(self, ref: str) -> tuple[str, bool]:
        answer = self._ask(do="state", ref=ref)
        return answer["state"], answer["final"]


@contextmanager
def running(kind: Kind) -> Iterator[Peer]:
    python = interpreter(kind)
    assert python is not None
    with (
        tempfile.TemporaryFile("w+") as words,
        subprocess.Popen(
            [python, SCRIPTS / kind.words[0], *kind.words[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
        ) as process,
    ):
        peer = Peer(process)
        try:
            peer.told()
            yield peer
        except RuntimeError as error:
            words.seek(0)
            error.add_note(words.read()[-3000:])
            raise
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


@dataclass
class Look:
    """What one cancel of a peer left, and what the peer said meanwhile."""

    survivors: list[str]
    state: str = ""
    said_over_while_alive: bool = False
    ended: dict[str, float] = field(default_factory=dict)


def cancelled_by(peer: Peer, runs: int, seconds: float) -> list[Look]:
    """So many trees at once, cancelled one after the other, looked at for so long."""
    trees = [Tree() for _ in range(runs)]
    try:
        refs = [peer.submit(tree.command) for tree in trees]
        for tree in trees:
            tree.wait_until_it_runs()
        for ref in refs:
            peer.cancel(ref)
        looks = [Look([]) for _ in trees]
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            over = _look_at_states(peer, refs, trees, looks)
            if over and not any(tree.living() for tree in trees):
                break
            time.sleep(0.25)
        for tree, look in zip(trees, looks, strict=True):
            look.survivors = tree.living()
        _look_at_states(peer, refs, trees, looks)
        return looks
    finally:
        for tree in trees:
            tree.close()


def _look_at_states(peer: Peer, refs: list[str], trees: list[Tree], looks: list[Look]) -> bool:
    """Whether the peer says of all that they are over."""
    all_over = True
    for ref, tree, look in zip(refs, trees, looks, strict=True):
        look.state, over = peer.state(ref)
        # Asked after the state: what lives now lived when the state was told.
        look.said_over_while_alive |= over and bool(tree.living())
        all_over &= over
    return all_over
