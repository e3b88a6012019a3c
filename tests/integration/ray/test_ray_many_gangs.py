"""Several gangs at once on a real Ray: their server is killed; one is cancelled for the next."""

from __future__ import annotations

import sys
import time

import pytest

from ray_cluster import marked
from yards import POOL, Truth, until

GANGS = 6
# Says who it is, waits for a word in a file, and ends with the number in it.
WAITING = (
    "import os, pathlib, sys, time\n"
    "go = pathlib.Path(sys.argv[1])\n"
    "print('up', os.environ['RANK'], flush=True)\n"
    "while not go.exists(): time.sleep(0.1)\n"
    "print('done', os.environ['RANK'], flush=True)\n"
)
# Ranks that ignore SIGTERM, each with a child in a session of its own.
STUBBORN = (
    "import os, signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "held = os.open(sys.argv[1], os.O_WRONLY)\n"
    "os.set_inheritable(held, True)\n"
    "subprocess.Popen(['sleep', '600'], close_fds=False, start_new_session=True)\n"
    "print('up', flush=True)\n"
    "time.sleep(600)\n"
)


def gang(yard, program, *arguments, nodes=2, procs_per_node=1, **fields):
    shape = {"nodes": nodes, "procs_per_node": procs_per_node, "placement": "spread"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return yard.submit(command, job_type="distributed", distributed=shape, **fields)


def ranks_up(yard, ref, world, word="up"):
    return all(any(word in line for line in yard.logs(ref, rank=rank)) for rank in range(world))


@pytest.mark.timeout(400)
def test_server_kill9_while_six_gangs_run_all_adopted(make_ray_yard, tmp_path):
    """R30, R50: no rank is touched, every gang is found again with both its ranks, and ends once,
    with the code and the whole log of each."""
    yard = make_ray_yard(max_concurrent=8).start()
    go = tmp_path / "go"
    refs = [gang(yard, WAITING, go, gpu_count=1) for _ in range(GANGS)]  # every GPU
    for ref in refs:
        until(lambda ref=ref: ranks_up(yard, ref, 2), 200, lambda ref=ref: yard.job(ref))
    pids = {ref: sorted(marked(f"{ref}.1")) for ref in refs}
    assert all(len(found) == 2 for found in pids.values()), pids
    yard.kill9()
    assert {ref: sorted(marked(f"{ref}.1")) for ref in refs} == pids
    began = time.monotonic()
    yard.start()
    until(lambda: all(yard.status(ref) == "running" for ref in refs), 90)
    print(f"start to all {GANGS} gangs known to run: {time.monotonic() - began:.2f} s")
    assert {ref: sorted(marked(f"{ref}.1")) for ref in refs} == pids
    go.touch()
    for ref in refs:
        yard.wait(ref, "completed", seconds=120)
        [attempt] = yard.attempts(ref)
        assert attempt["exit_code"] == 0
        for rank in (0, 1):
            assert yard.logs(ref, rank=rank) == [f"up {rank}", f"done {rank}"]


def test_cancel_of_a_gang_gives_gpus_and_ports_to_the_next(make_ray_yard, tmp_path):
    """R51: all ranks of three nodes are gone with what they started, though they ignore SIGTERM;
    the only port of the pool and all GPUs are back, and the next gang starts by itself."""
    port = POOL[-1]
    yard = make_ray_yard(env={"RUNYARD_PORT_RANGE": f"{port}-{port}"}).start()
    truth = Truth(tmp_path / "truth")
    shape = {"nodes": 3, "procs_per_node": 2, "gpu_count": 4}
    ref = gang(yard, STUBBORN, truth.path, grace_s=1, **shape)
    until(lambda: ranks_up(yard, ref, 6), 120, lambda: yard.job(ref))
    told = "import os; print('next at', os.environ['MASTER_PORT'], flush=True)"
    after = gang(yard, told, **shape)
    assert yard.status(after) == "pending"
    assert len(marked(f"{ref}.1")) == 12
    began = time.monotonic()
    assert yard.cancel(ref).body["status"] == "cancelled"
    gone = time.monotonic() - began
    assert not truth.held()
    assert not marked(f"{ref}.1")
    yard.wait(after, "completed", seconds=90)
    print(f"cancelled in {gone:.2f} s, the next had ended after {time.monotonic() - began:.2f} s")
    assert yard.logs(after) == [f"next at {port}"]
    assert not any(gpu["jobs"] for gpu in yard.ask("/gpus"))
    truth.close()
