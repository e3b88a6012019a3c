"""Whatever dies on the side of Ray: the attempt's end is known, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from ray_cluster import marked
from ray_yard import holding
from yards import Truth, alive, descendants, stat, until

# A line now and then until it is told to end; the last tells how many there were.
COUNTING = (
    "import os, sys, time\n"
    "number = 0\n"
    "while not os.path.exists(sys.argv[1]):\n"
    "    print('line', number, flush=True)\n"
    "    number += 1\n"
    "    time.sleep(0.05)\n"
    "print('lines', number, flush=True)\n"
    "sys.exit(7)\n"
)


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def children(pid: int) -> list[int]:
    return [one for one in descendants(pid) if (stat(one) or ("", 0))[1] == pid]


@pytest.fixture
def held(ray_yard, tmp_path):
    """A job that holds on to a tree which ignores SIGTERM: (job, truth, pid of its actor)."""
    truth = Truth(tmp_path / "truth")
    ref = ray_yard.submit(holding(truth), gpu_count=1, grace_s=600)
    until(lambda: "up" in ray_yard.logs(ref), 60)
    yield ref, truth, ray_yard.cluster.actors()[f"job_{ref}_a1_n0"]
    truth.close()


def test_names_are_those_of_the_design(ray_yard, held):
    """Operators find jobs in Ray's own tools by these names."""
    ref, _, _ = held
    assert list(ray_yard.cluster.actors()) == [f"job_{ref}_a1_n0"]
    assert ray_yard.cluster.groups() == [f"job_{ref}_a1"]
    assert ray_yard.cancel(ref, wait=0).ok
    ray_yard.api("POST", f"/jobs/{ref}/force-kill")
    ray_yard.wait(ref, "cancelled", seconds=60)


def test_direct_child_is_only_the_shim(ray_yard, held):
    """Ray kills direct children of an actor without asking: the keeper is further down, and in a
    session of its own."""
    ref, truth, actor = held
    [shim] = children(actor)
    assert comm(shim) == "runyard-shim"
    [keeper] = children(shim)
    assert comm(keeper) == "runyard-keeper"
    assert os.getsid(keeper) == keeper
    [supervisor] = children(keeper)
    assert os.getsid(supervisor) == supervisor
    assert set(marked(f"{ref}.1")) <= set(descendants(supervisor))
    ray_yard.api("POST", f"/jobs/{ref}/force-kill")
    ray_yard.wait(ref, "cancelled", seconds=60)
    assert not truth.held()


def test_actor_kill9_fails_attempt_no_orphans(ray_yard, held):
    """R51: what an actor leaves that is killed is ended and read: the log is whole."""
    ref, truth, actor = held
    os.kill(actor, signal.SIGKILL)
    job = ray_yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "supervisor_lost"
    assert not truth.held()
    assert "up" in ray_yard.logs(ref)
    assert ray_yard.cluster.groups() == []


@pytest.mark.parametrize("way", ["kill", "end", "remove"])
def test_ray_kill_and_pg_removal_leave_no_orphans(ray_yard, held, way):
    """The regression test for the shim: by ray.kill, by an actor that ends itself, by removal of
    the placement group under it."""
    ref, truth, _ = held
    name = f"job_{ref}_a1" if way == "remove" else f"job_{ref}_a1_n0"
    ray_yard.cluster.drive(f"{way}('{name}')")
    until(lambda: not truth.held())
    job = ray_yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "supervisor_lost"


@pytest.mark.parametrize("whom", ["supervisor", "keeper", "both"])
def test_supervisor_kill9_is_swept(ray_yard, held, whom):
    """The keeper ends what a killed supervisor left; when it is killed too, the actor does."""
    ref, truth, actor = held
    [shim] = children(actor)
    [keeper] = children(shim)
    [supervisor] = children(keeper)
    for pid in {"supervisor": [supervisor], "keeper": [keeper], "both": [keeper, supervisor]}[
        whom
    ]:
        os.kill(pid, signal.SIGKILL)
    job = ray_yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "supervisor_lost"
    assert not truth.held()


def test_bridge_kill9_reattach(ray_yard, tmp_path):
    """R50: ranks are not started again, the log has each line once, the exit code is known."""
    go = tmp_path / "go"
    ref = ray_yard.submit([sys.executable, "-c", COUNTING, str(go)])
    until(lambda: "line 20" in ray_yard.logs(ref), 60)
    pids = marked(f"{ref}.1")
    assert len(pids) == 1
    first = ray_yard.bridge()
    os.kill(first, signal.SIGKILL)
    until(lambda: not alive(first), 60)
    until(lambda: ray_yard.bridge() != first, 90)
    assert marked(f"{ref}.1") == pids
    go.touch()
    job = ray_yard.wait(ref, "failed", seconds=90)
    assert job["reason"]["params"]["code"] == 7
    *lines, last = ray_yard.logs(ref, tail=10_000)
    assert lines == [f"line {number}" for number in range(len(lines))]
    assert last == f"lines {len(lines)}"
    assert len(ray_yard.attempts(ref)) == 1


def test_a_cancel_while_the_bridge_is_away(ray_yard, held):
    """The request waits in the folder, and is passed on by the next bridge."""
    ref, truth, _ = held
    os.kill(ray_yard.bridge(), signal.SIGKILL)
    ray_yard.api("POST", f"/jobs/{ref}/force-kill")
    ray_yard.wait(ref, "cancelled", seconds=90)
    assert not truth.held()


def test_orphan_sweep_on_start(make_ray_yard):
    """A stray actor and a stray placement group of an attempt of ours that has ended are removed;
    names of others, also those that only begin alike, are not touched."""
    yard = make_ray_yard().start()
    ref = yard.submit("true")
    yard.wait(ref, "completed", seconds=60)
    yard.kill9()
    cluster = yard.cluster
    cluster.drive(f"make_actor('job_{ref}_a1_n0')")
    cluster.drive(f"make_group('job_{ref}_a1', 1)")
    foreign = [f"job_{ref}2_a1_n0", f"job_{ref}_a12_n0", "somebody"]
    for name in foreign:
        cluster.drive(f"make_actor('{name}')")
    cluster.drive(f"make_group('job_{ref}2_a1', 1)")
    try:
        yard.start()
        until(lambda: f"job_{ref}_a1_n0" not in cluster.actors(), 60)
        until(lambda: cluster.groups() == [f"job_{ref}2_a1"], 60, cluster.groups)
        assert sorted(cluster.actors()) == sorted(foreign)
    finally:
        for name in foreign:
            cluster.drive(f"kill('{name}')")
        cluster.drive(f"remove('job_{ref}2_a1')")


def test_node_death(make_ray_yard, tmp_path):
    """R51: its raylet is killed. The attempt is lost, its tree is gone, nothing is given to the
    node any more, and the job runs again elsewhere."""
    yard = make_ray_yard().start()
    cluster = yard.cluster
    node = cluster.add_node(gpus=6)
    truth = Truth(tmp_path / "truth")
    marker = tmp_path / "second"
    try:
        until(lambda: any(row["name"] == node.address for row in yard.ask("/nodes")), 60)
        first = yard.submit(holding(truth), gpu_count=6, grace_s=600)
        until(lambda: "up" in yard.logs(first), 60)
        again = f"if [ -e {marker} ]; then exit 0; fi; touch {marker}; echo up; sleep 600"
        label = {"gpu_count": 0, "max_retries": 1}
        second = yard.submit(again, **label)
        until(lambda: "up" in yard.logs(second), 60)
        os.kill(node.raylet, signal.SIGKILL)
        job = yard.wait(first, "failed", seconds=60)
        assert job["reason"]["code"] == "supervisor_lost"
        until(lambda: not truth.held())
        until(
            lambda: (
                not [
                    row
                    for row in yard.ask("/nodes")
                    if row["name"] == node.address and row.get("state") == "ok"
                ]
            ),
            60,
        )
        third = yard.submit("true", gpu_count=6)
        until(lambda: (yard.job(third)["wait"] or {}).get("code") == "never_fits", 60)
        assert yard.cancel(third).ok
        yard.cancel(second)
    finally:
        cluster.end_node(node.address)
        truth.close()
