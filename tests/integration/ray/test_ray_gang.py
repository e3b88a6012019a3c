"""Jobs of several nodes on a real Ray cluster."""

from __future__ import annotations

import sys
import time

from ray_cluster import marked
from yards import until

SHOW = (
    "import os\n"
    "names = 'RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR "
    "MASTER_PORT CUDA_VISIBLE_DEVICES RUNYARD_ATTEMPT_TOKEN'.split()\n"
    "for name in names: print(name, os.environ.get(name), sep='=', flush=True)\n"
)
SPREAD = {"nodes": 2, "placement": "spread"}


def distributed(yard, program, **fields):
    shape = SPREAD | fields.pop("distributed", {})
    command = [sys.executable, "-c", program]
    return yard.submit(command, job_type="distributed", distributed=shape, **fields)


def told(yard, ref, rank):
    return dict(line.split("=", 1) for line in yard.logs(ref, rank=rank) if "=" in line)


def test_gang_two_ranks_two_nodes(ray_yard):
    """R30, R50: two nodes, each with its GPUs; what torchrun would tell; both logs; one end."""
    ref = distributed(ray_yard, SHOW + "import sys; sys.exit(0)", gpu_count=2)
    ray_yard.wait(ref, "completed", seconds=90)
    ranks = [told(ray_yard, ref, rank) for rank in (0, 1)]
    assert [rank["RANK"] for rank in ranks] == ["0", "1"]
    assert [rank["NODE_RANK"] for rank in ranks] == ["0", "1"]
    assert {rank["WORLD_SIZE"] for rank in ranks} == {"2"}
    assert {rank["LOCAL_RANK"] for rank in ranks} == {"0"}
    assert len({(rank["MASTER_ADDR"], rank["MASTER_PORT"]) for rank in ranks}) == 1
    assert len({rank["RUNYARD_ATTEMPT_TOKEN"] for rank in ranks}) == 1
    for rank in ranks:
        assert len(set(rank["CUDA_VISIBLE_DEVICES"].split(","))) == 2
    [attempt] = ray_yard.attempts(ref)
    assert attempt["exit_code"] == 0
    nodes = {part["node"] for part in attempt["slices"]}
    assert len(nodes) == 2
    assert ranks[0]["MASTER_ADDR"] in set(ray_yard.cluster.nodes)


def test_two_processes_on_each_of_two_nodes(ray_yard):
    """R50: the ranks of one node share its slice."""
    ref = distributed(ray_yard, SHOW, distributed={"procs_per_node": 2})
    ray_yard.wait(ref, "completed", seconds=90)
    ranks = [told(ray_yard, ref, rank) for rank in range(4)]
    assert [rank["RANK"] for rank in ranks] == ["0", "1", "2", "3"]
    assert [rank["LOCAL_RANK"] for rank in ranks] == ["0", "1", "0", "1"]
    assert [rank["NODE_RANK"] for rank in ranks] == ["0", "0", "1", "1"]


def test_rank_exit_kills_gang(ray_yard, tmp_path):
    """R50: the first failing rank is named, its code is the attempt's, its peer is ended."""
    program = (
        "import os, pathlib, sys, time\n"
        f"other = pathlib.Path('{tmp_path}/other')\n"
        "if os.environ['RANK'] == '1':\n"
        "    while not other.exists(): time.sleep(0.05)\n"
        "    sys.exit(3)\n"
        "other.touch()\n"
        "time.sleep(600)\n"
    )
    ref = distributed(ray_yard, program, grace_s=1, distributed={"gang_grace_s": 1})
    job = ray_yard.wait(ref, "failed", seconds=90)
    [attempt] = ray_yard.attempts(ref)
    assert attempt["exit_code"] == 3
    assert job["reason"]["params"].get("rank") == 1, job["reason"]
    assert not marked(f"{ref}.1")


def test_cancel_of_a_gang_ends_all_ranks(ray_yard):
    """R51: all ranks are gone, GPUs and ports are back, the next job starts by itself."""
    program = "import time; print('up', flush=True); time.sleep(600)"
    ref = distributed(ray_yard, program, gpu_count=4, grace_s=1)
    until(lambda: all("up" in ray_yard.logs(ref, rank=rank) for rank in (0, 1)), 90)
    after = distributed(ray_yard, "print('next')", gpu_count=4)
    began = time.monotonic()
    assert ray_yard.cancel(ref).body["status"] == "cancelled"
    assert not marked(f"{ref}.1")
    print(f"cancel to all ranks gone: {time.monotonic() - began:.2f} s")
    ray_yard.wait(after, "completed", seconds=90)


def test_the_actor_of_one_slice_dies(ray_yard):
    """R50: the other slices are ended, and the attempt is lost, not failed by its program."""
    program = "import time; print('up', flush=True); time.sleep(600)"
    ref = distributed(ray_yard, program, grace_s=1, distributed={"gang_grace_s": 1})
    until(lambda: all("up" in ray_yard.logs(ref, rank=rank) for rank in (0, 1)), 90)
    ray_yard.cluster.drive(f"kill('job_{ref}_a1_n1')")
    job = ray_yard.wait(ref, "failed", seconds=90)
    assert job["reason"]["code"] == "supervisor_lost"
    assert not marked(f"{ref}.1")


def test_infeasible_is_rejected(ray_yard):
    """More GPUs than a node has, and more nodes than there are: the job says that it never fits,
    and nothing waits in Ray."""
    too_many_gpus = ray_yard.submit("true", gpu_count=40)
    too_many_nodes = distributed(ray_yard, "pass", distributed={"nodes": 9})
    for ref in (too_many_gpus, too_many_nodes):
        until(lambda ref=ref: (ray_yard.job(ref)["wait"] or {}).get("code") == "never_fits", 60)
    assert ray_yard.cluster.groups() == []
    for ref in (too_many_gpus, too_many_nodes):
        assert ray_yard.cancel(ref).ok
