"""What does a cancel leave of a tree of six processes, and how long does it take?"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cancel_peers
from measurement import Measurement, begin, median, percentile, quick
from tree_of_six import Tree
from yard_under_test import SMALL, Yard, until

TESTS = Path(__file__).resolve().parent.parent / "tests"
ROUNDS = 4 if quick() else 100
GRACEFUL_ROUNDS = 1 if quick() else 10
PEER_RUNS = 1 if quick() else 3
LOOK_S = 5 if quick() else 60  # how long after a peer's cancel survivors are counted
AGAIN_S = 1 if quick() else 5
GRACE_S = 1.0
CROWD = 20 if quick() else 200
CROWD_ROUNDS = 1 if quick() else 3
CROWD_GRACE_S = 2.0
WITHIN_S = 30
STUBBORN = "exec 9>{fifo}; trap '' TERM; echo x >&9; sleep 3600 & sleep 3600"


@dataclass
class Ends:
    """What was seen of the cancels of one yard, in seconds from the call."""

    gone: list[float] = field(default_factory=list)  # until the last process was gone
    shown: list[float] = field(default_factory=list)  # until `cancelled` was answered
    survivors: int = 0  # processes alive when `cancelled` was shown
    trees: list[Tree] = field(default_factory=list)  # kept, to be looked at again

    def survivors_now(self) -> int:
        return sum(len(tree.living()) for tree in self.trees)


def timed_end(tree: Tree, end: Callable[[], object]) -> tuple[float, float]:
    """(last process gone, call answered), in seconds from the call."""
    watcher = tree.watched()
    began = time.monotonic()
    end()
    answered = time.monotonic()
    watcher.join(WITHIN_S)
    gone = max(tree.ended.values()) if not tree.living() else float("inf")
    return gone - began, answered - began


def by_a_parent_that_knows_them() -> float:
    """The floor: kill -9 of six known pids."""
    with Tree() as tree:
        process = subprocess.Popen(tree.command)
        tree.wait_until_it_runs()

        def end() -> None:
            for pid in tree.pids.values():
                os.kill(pid, signal.SIGKILL)

        gone = timed_end(tree, end)[0]
        process.wait()
        detached = tree.pids["detached"]  # an orphan, so it is ours to reap
        os.waitpid(detached, 0)
    return gone


def by_runyard(yard: Yard, ends: Ends, action: str, tree: Tree, grace_s: float = 30) -> float:
    """Cancel one tree; `action` is the last part of the path. Seconds until all were gone."""
    job = yard.submit(tree.command, grace_s=grace_s)
    tree.wait_until_it_runs()
    yard.wait(job, "running")

    def end() -> None:
        answer = yard.api("POST", f"/jobs/{job}/{action}?wait={WITHIN_S}")
        ends.survivors += len(tree.living())
        assert answer["status"] == "cancelled", answer

    gone, shown = timed_end(tree, end)
    ends.gone.append(gone)
    ends.shown.append(shown)
    ends.trees.append(tree)
    return gone


def by_slurm(
    peer: cancel_peers.Peer, ref: str, tree: Tree, cancel: Callable[[str], None]
) -> float:
    tree.wait_until_it_runs()
    until(lambda: peer.state(ref)[0] == "RUNNING", WITHIN_S)
    gone = timed_end(tree, lambda: cancel(ref))[0]
    return gone


def by_command(yard: Yard) -> float:
    """As a person does it: `runyard cancel --now`, a program that starts and ends."""
    environment = {**yard.environment, "RUNYARD_API_KEY": yard.http.key}
    environment["RUNYARD_URL"] = f"http://127.0.0.1:{yard.port}"
    with Tree() as tree:
        job = yard.submit(tree.command)
        tree.wait_until_it_runs()
        words = [*yard.command, "cancel", "--now", job]

        def end() -> None:
            subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)

        return timed_end(tree, end)[0]


@contextmanager
def plain_user() -> Iterator[Any]:
    sys.path.insert(0, str(TESTS))
    with importlib.import_module("throwaway_user").somebody() as person:
        yield person


# the parts


def survivors_of_peers(result: Measurement) -> None:
    """All at once: they sleep most of the time, and no time of theirs is quoted from here."""

    def looked_at(kind: cancel_peers.Kind) -> list[cancel_peers.Look] | str:
        if cancel_peers.interpreter(kind) is None:
            return "not installed"
        try:
            with cancel_peers.running(kind) as peer:
                return cancel_peers.cancelled_by(peer, PEER_RUNS, LOOK_S)
        except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
            return " ".join([str(error), *getattr(error, "__notes__", [])])

    with ThreadPoolExecutor(len(cancel_peers.KINDS)) as pool:
        found = list(pool.map(looked_at, cancel_peers.KINDS))
    for kind, looks in zip(cancel_peers.KINDS, found, strict=True):
        if isinstance(looks, str):
            print(f"  {kind.name}: {looks}")
            continue
        worst = max(looks, key=lambda look: len(look.survivors))
        who = f" ({', '.join(worst.survivors)})" if worst.survivors else ""
        name = f"{kind.name}: alive {LOOK_S} s after the cancel{who}"
        result.add(name, len(worst.survivors), "of 6")
        name = f"{kind.name}: said {worst.state} while something lived"
        result.add(
            name, sum(look.said_over_while_alive for look in looks), f"of {len(looks)} runs"
        )


def forced(
    result: Measurement, yards: dict[str, Yard], slurm: cancel_peers.Peer | None
) -> float | None:
    """The same tree ended in turn by each, so that all meet the same machine.

    Gives what `scancel` took, to measure other cancels against.
    """
    floor: list[float] = []
    command: list[float] = []
    library: list[float] = []
    ends = {name: Ends() for name in yards}
    for yard in yards.values():  # the first one warms every cache
        by_runyard(yard, warming := Ends(), "force-kill", Tree())
        warming.trees[0].close()
    for number in range(ROUNDS):
        tree = Tree()
        if slurm is not None:  # it needs a second to start a job: meanwhile the others
            ref = slurm.submit(tree.command)
        floor.append(by_a_parent_that_knows_them())
        for name, yard in yards.items():
            by_runyard(yard, ends[name], "force-kill", Tree())
        if slurm is not None:
            if number % 2:
                command.append(by_slurm(slurm, ref, tree, slurm.cancel))
            else:
                library.append(by_slurm(slurm, ref, tree, slurm.cancel_by_library))
        tree.close()
    _tell_times(result, "floor: kill -9 of six known pids", floor)
    if slurm is not None:
        _tell_times(result, "slurm, cgroup: scancel", command)
        _tell_times(result, "slurm, cgroup: its C library", library)
    for name in yards:
        _tell_times(result, f"{name}: force-kill, last process gone", ends[name].gone)
        _tell_times(result, f"{name}: force-kill, `cancelled` answered", ends[name].shown)
        result.add(f"{name}: over floor, p50", median(ends[name].gone) / median(floor), "x")
        if slurm is not None:
            ratio = median(ends[name].gone) / median(command)
            result.add(f"{name}: over scancel, p50", ratio, "x", "<= 2")
            ratio = median(ends[name].gone) / median(library)
            result.add(f"{name}: over slurm's C library, p50", ratio, "x", "<= 2")
            ratio = percentile(ends[name].gone, 95) / percentile(command, 95)
            result.add(f"{name}: over scancel, p95", ratio, "x")
    time.sleep(AGAIN_S)
    for name in yards:
        _tell_survivors(result, f"{name}: force-kill", ends[name])
    return median(command) if command else None


def graceful(result: Measurement, yards: dict[str, Yard], scancel: float | None) -> None:
    """A parent that dies of SIGTERM, and one that needs the whole grace as its deaf child does."""
    for name, yard in yards.items():
        ends = Ends()
        for parent, ignores in (("obeys", False), ("ignores SIGTERM", True)):
            after = [
                by_runyard(yard, ends, "cancel", Tree(parent_ignores=ignores), GRACE_S) - GRACE_S
                for _ in range(GRACEFUL_ROUNDS)
            ]
            words = f"{name}: cancel, parent {parent}, after the grace"
            result.add(f"{words}, p50", median(after) * 1e3, "ms")
            if scancel is not None:
                result.add(f"{words}, over scancel, p50", median(after) / scancel, "x", "<= 2")
        time.sleep(AGAIN_S)
        _tell_survivors(result, f"{name}: cancel", ends)


def by_hand(result: Measurement, yard: Yard) -> None:
    took = [by_command(yard) for _ in range(GRACEFUL_ROUNDS)]
    result.add("runyard cancel --now, the command, p50", median(took) * 1e3, "ms")


def crowd(result: Measurement) -> None:
    """Many jobs that all ignore SIGTERM, cancelled by one call."""
    gone, shown = [], []
    with Yard(max_concurrent=CROWD) as yard:
        for number in range(CROWD_ROUNDS):
            times = _crowd_once(yard, yard.folder / f"truth{number}")
            gone.append(times[0] - CROWD_GRACE_S)
            shown.append(times[1] - CROWD_GRACE_S)
    result.add(f"{CROWD} jobs at once: gone, after the grace", median(gone), "s", "<= 2")
    result.add(f"{CROWD} jobs at once: `cancelled`, after the grace", median(shown), "s", "<= 2")


def _crowd_once(yard: Yard, fifo: Path) -> tuple[float, float]:
    os.mkfifo(fifo)
    truth = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    command = ["sh", "-c", STUBBORN.format(fifo=fifo)]
    jobs = [{"command": command, **SMALL, "grace_s": CROWD_GRACE_S}] * CROWD
    answer = yard.api("POST", "/jobs/batch", {"jobs": jobs})
    ids = [job["job_id"] for job in answer["jobs"]]
    started = 0
    while started < 2 * CROWD:  # each writes two bytes
        try:
            started += len(os.read(truth, 4096))
        except BlockingIOError:
            time.sleep(0.02)
    yard.wait_until_counted("running", CROWD)
    began = time.monotonic()
    yard.api("POST", "/jobs/cancel", {"ids": ids})
    while True:
        try:
            if os.read(truth, 4096) == b"":
                break
        except BlockingIOError:
            time.sleep(0.005)
    gone = time.monotonic() - began
    until(lambda: yard.counts().get("cancelling", 0) == 0, 60, every=0.02)
    shown = time.monotonic() - began
    os.close(truth)
    return gone, shown


def _tell_times(result: Measurement, name: str, seconds: list[float]) -> None:
    result.add(f"{name}, p50", median(seconds) * 1e3, "ms")
    result.add(f"{name}, p95", percentile(seconds, 95) * 1e3, "ms")


def _tell_survivors(result: Measurement, name: str, ends: Ends) -> None:
    runs = len(ends.trees)
    result.add(
        f"{name}: alive when `cancelled` was shown, {runs} runs", ends.survivors, "", "<= 0"
    )
    result.add(f"{name}: alive {AGAIN_S} s later", ends.survivors_now(), "", "<= 0")
    for tree in ends.trees:
        tree.close()


def main() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 8192), limit))
    result = begin(__doc__ or "")
    survivors_of_peers(result)
    with ExitStack() as stack:
        person = stack.enter_context(plain_user())
        yards = {}
        if os.geteuid() == 0:
            yards["runyard as root"] = stack.enter_context(Yard())
        yards["runyard as a plain user"] = stack.enter_context(Yard(person=person))
        slurm = None  # entered last and so left first: a yard ends whatever is below us
        if cancel_peers.interpreter(cancel_peers.SLURM_CGROUP) is not None:
            slurm = stack.enter_context(cancel_peers.running(cancel_peers.SLURM_CGROUP))
        scancel = forced(result, yards, slurm)
        graceful(result, yards, scancel)
        by_hand(result, next(iter(yards.values())))
    crowd(result)
    result.keep()


if __name__ == "__main__":
    main()
