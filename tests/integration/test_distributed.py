"""Distributed jobs on one machine, on a whole server: every rank is told who it is, all end
together, the first that failed is named, nothing is left (R30, R41, R50, R55)."""

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest

from runyard.supervisor import journal
from yards import POOL, Truth, alive, kill9, port_is_free, until

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "distributed.md"
TWO = {"procs_per_node": 2}
# Each rank holds the FIFO open, and so does a child in a session of its own.
STANDS = """exec 9>"$ALIVE"
setsid sh -c 'echo stands apart; exec sleep 600' &
echo "rank $RANK stands"
while :; do sleep 0.1; done"""
PRINTS = """
import json, os
names = ("RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK ROLE_RANK "
         "ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID CUDA_VISIBLE_DEVICES "
         "RUNYARD_ATTEMPT_TOKEN RUNYARD_METRICS_FILE RUNYARD_ATTEMPT_ID").split()
print(json.dumps({name: os.environ.get(name) for name in names}))
"""


# A process answers to its number until the supervisor has recorded its end.
AFTER_RANK_1 = """
import os, pathlib, time
told = pathlib.Path(os.environ["PIDS"], "rank1")
if os.environ["RANK"] == "1":
    told.with_suffix(".new").write_text(str(os.getpid()))
    told.with_suffix(".new").rename(told)
def after_rank_1():
    while not told.exists():
        time.sleep(0.05)
    while os.path.exists("/proc/" + told.read_text()):
        time.sleep(0.05)
"""


@pytest.fixture
def truth(tmp_path):
    made = Truth(tmp_path / "alive")
    yield made
    made.close()


def python(code):
    return [sys.executable, "-c", code]


def await_all(yard, ref, ranks):
    def stand():
        return all(
            {"stands apart", f"rank {rank} stands"} <= set(yard.logs(ref, rank=rank))
            for rank in ranks
        )

    yard.wait(ref, "running")
    until(stand, 60, lambda: [yard.logs(ref, rank=rank) for rank in ranks])


def record_of(yard, ref, number=1):
    return journal.read(str(yard.data / "attempts" / f"{ref}.{number}"))


def test_every_rank_is_told_who_it_is(yard):
    """R30: all that torchrun would tell, a port of the pool to meet at, a log of its own."""
    ref = yard.submit(python(PRINTS), distributed={"procs_per_node": 3})
    job = yard.wait(ref, "completed")
    told = [json.loads(yard.logs(ref, rank=rank)[0]) for rank in range(3)]
    [port] = job["attempt"]["ports"]
    assert port in POOL
    for rank, own in enumerate(told):
        assert (own["RANK"], own["LOCAL_RANK"], own["ROLE_RANK"]) == (str(rank),) * 3
        assert (own["WORLD_SIZE"], own["LOCAL_WORLD_SIZE"], own["ROLE_WORLD_SIZE"]) == ("3",) * 3
        assert (own["NODE_RANK"], own["GROUP_RANK"]) == ("0", "0")
        assert (own["MASTER_ADDR"], own["MASTER_PORT"]) == ("127.0.0.1", str(port))
        assert own["TORCHELASTIC_RUN_ID"] == own["RUNYARD_ATTEMPT_ID"] == f"{ref}.1"
        assert own["CUDA_VISIBLE_DEVICES"] == ""
    assert len({own["RUNYARD_ATTEMPT_TOKEN"] for own in told}) == 1
    assert len({own["RUNYARD_METRICS_FILE"] for own in told}) == 3
    assert [one["exit_code"] for one in job["attempt"]["ranks"]] == [0, 0, 0]
    missing = yard.api("GET", f"/jobs/{ref}/logs?rank=3")
    assert (missing.status, missing.body["params"]) == (404, {"rank": 3})


def test_a_single_job_knows_nothing_of_ranks(yard):
    """R55: all of the variables, or none."""
    ref = yard.submit(python(PRINTS))
    job = yard.wait(ref, "completed")
    told = json.loads(yard.logs(ref)[0])
    names = ("RANK", "WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "RUNYARD_ATTEMPT_TOKEN")
    assert [told[name] for name in names] == [None] * 5
    assert (job["attempt"]["ports"], job["attempt"]["ranks"]) == ([], [])
    assert "ranks" not in record_of(yard, ref).spec


def test_the_first_failing_rank_is_named_and_ends_the_others(yard, truth, tmp_path):
    """R30: root cause by its rank, with the line that proves it; others only lost their peer."""
    code = (
        AFTER_RANK_1
        + """
if os.environ["RANK"] == "1":
    raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 79.15 GiB)")
after_rank_1()
raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4321")
"""
    )
    script = f'exec 9>"$ALIVE"; exec {sys.executable} -c "$CODE"'
    ref = yard.submit(
        script,
        distributed={"procs_per_node": 4},
        env_vars={"ALIVE": str(truth.path), "CODE": code, "PIDS": str(tmp_path)},
    )
    job = yard.wait(ref, "failed")
    assert not truth.held()
    assert job["reason"]["params"]["rank"] == 1
    found = job["diagnosis"]
    assert (found["category"], found["root"]["rank"]) == ("gpu_oom", 1)
    assert found["facts"]["rank"] == 1
    assert "rank 1 failed first" in yard.cli("explain", ref).stdout
    assert "rank 1 failed first" in yard.cli("show", ref).stdout
    assert [one["exit_code"] for one in job["attempt"]["ranks"]] == [1] * 4


def test_a_rank_that_is_slow_to_die_is_still_the_root(yard):
    """The first to exit only lost its peer, whose own error is found in its log."""
    code = """
import os, sys, time
if os.environ["RANK"] == "0":
    time.sleep(0.5)
    raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1")
import traceback
try:
    raise ValueError("Expected input batch_size (32) to match target batch_size (16).")
except ValueError:
    traceback.print_exc()
sys.stderr.flush()
time.sleep(1.5)  # as a process that drains its collectives before it exits
os._exit(1)
"""
    ref = yard.submit(python(code), distributed=TWO)
    job = yard.wait(ref, "failed")
    assert job["attempt"]["diagnosis"]["root"]["rank"] == 1
    assert job["attempt"]["diagnosis"]["facts"]["rank"] == 1


def test_others_are_ended_when_the_gang_grace_is_over(make_yard, truth):
    yard = make_yard(env={"RUNYARD_GANG_GRACE_S": "0.3"}).start()
    script = f'[ "$RANK" = 2 ] && exit 9; {STANDS}'
    ref = yard.submit(
        script, distributed={"procs_per_node": 3}, env_vars={"ALIVE": str(truth.path)}
    )
    job = yard.wait(ref, "failed")
    assert not truth.held()
    assert (job["attempt"]["exit_code"], job["reason"]["params"]["rank"]) == (9, 2)
    codes = [(one["exit_code"], one["signal"]) for one in job["attempt"]["ranks"]]
    assert codes == [(None, 15), (None, 15), (9, None)]


def test_a_rank_that_does_not_end_with_the_others(yard):
    """R30: the job fails by name, instead of holding its GPUs for ever."""
    script = '[ "$RANK" = 0 ] && exit 0; while :; do sleep 0.1; done'
    ref = yard.submit(script, distributed={**TWO, "finish_skew_s": 0.5})
    job = yard.wait(ref, "failed")
    assert job["reason"]["code"] == "rank_lagged"
    assert job["reason"]["params"] == {"rank": 1, "limit_s": 0.5}
    assert job["diagnosis"]["category"] == "comm_hang"
    shown = yard.cli("show", ref).stdout
    assert "rank 1 did not end within" in shown


def test_cancel_of_a_gang_leaves_nothing_and_the_next_job_starts(make_yard, truth):
    """R41, R50: all ranks and their children gone, the port back, the receipt counts them."""
    yard = make_yard(max_concurrent=1).start()
    ref = yard.submit(
        STANDS, distributed={"procs_per_node": 4}, env_vars={"ALIVE": str(truth.path)}
    )
    waiting = yard.submit("echo my turn")
    await_all(yard, ref, range(4))
    [port] = yard.job(ref)["attempt"]["ports"]
    answer = yard.cancel(ref)
    assert answer.body["status"] == "cancelled"
    assert not truth.held(), "a process of a cancelled gang lives"
    receipt = answer.body["receipt"]
    assert receipt["proof"] == "echild"
    assert receipt["processes_ended"] >= 8
    assert [one["rank"] for one in receipt["ranks"]] == [0, 1, 2, 3]
    assert receipt["ports"] == [port]
    assert port_is_free(port)
    yard.wait(waiting, "completed")


@pytest.mark.timeout(180)
def test_server_kill9_six_gangs_adopted(make_yard, tmp_path):
    """R41, R42: all ranks of all gangs go on; none is started twice; each can be cancelled."""
    yard = make_yard(max_concurrent=8).start()
    truths = [Truth(tmp_path / f"alive{number}") for number in range(6)]
    try:
        refs = [
            yard.submit(STANDS, distributed=TWO, env_vars={"ALIVE": str(one.path)})
            for one in truths
        ]
        for ref in refs:
            await_all(yard, ref, range(2))
        before = {ref: [one["pid"] for one in yard.job(ref)["attempt"]["ranks"]] for ref in refs}
        yard.kill9()
        yard.start()
        for ref in refs:
            ranks = yard.wait(ref, "running")["attempt"]["ranks"]
            assert [one["pid"] for one in ranks] == before[ref]
            assert all(alive(pid) for pid in before[ref])
            assert len(yard.attempts(ref)) == 1
        asked = yard.api("POST", "/jobs/cancel?wait=60", {"job_ids": refs}, timeout=90)
        assert sorted(asked.body["cancelled"]) == sorted(refs)
        assert not any(one.held() for one in truths)
    finally:
        for one in truths:
            one.close()


def test_a_gang_that_ended_while_no_server_ran(yard, tmp_path):
    """R42: code and rank are told truly afterwards."""
    code = (
        AFTER_RANK_1
        + """
if os.environ["RANK"] == "1":
    while not pathlib.Path(os.environ["PIDS"], "go").exists():
        time.sleep(0.05)
    os._exit(5)
after_rank_1()
os._exit(6)
"""
    )
    ref = yard.submit(python(code), distributed=TWO, env_vars={"PIDS": str(tmp_path)})
    yard.wait(ref, "running")
    yard.kill9()
    (tmp_path / "go").touch()
    until(lambda: record_of(yard, ref).exit, 60)
    yard.start()
    job = yard.wait(ref, "failed")
    assert (job["attempt"]["exit_code"], job["reason"]["params"]["rank"]) == (5, 1)


def test_supervisor_kill9_ends_every_rank(yard, truth):
    """R42: the keeper takes over; no exit code is invented, and the job is tried again."""
    ref = yard.submit(STANDS, distributed=TWO, env_vars={"ALIVE": str(truth.path)}, max_retries=1)
    await_all(yard, ref, range(2))
    pids = [one["pid"] for one in yard.job(ref)["attempt"]["ranks"]]
    kill9(record_of(yard, ref).supervisor)
    until(lambda: len(yard.attempts(ref)) == 2, 60, lambda: yard.attempts(ref))
    first = yard.attempts(ref)[0]
    assert (first["end"], first["exit_code"]) == ("lost", None)
    assert not any(alive(pid) for pid in pids)
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert not truth.held()


def test_a_hung_collective_is_caught_with_the_stacks_of_all_ranks(make_yard, tmp_path):
    """R34: no rank comes forward; the stack of each is saved before anything is done."""
    code = """
import os, pathlib, time
from runyard import report
here = pathlib.Path(os.environ["HERE"])
(here / os.environ["RANK"]).touch()
while not all((here / rank).exists() for rank in "01"):
    time.sleep(0.02)
for step in range(5):
    report.report(step=step, total=100, loss=1.0)
    time.sleep(0.05)
def waits_in_a_collective():
    while True:
        time.sleep(0.2)
waits_in_a_collective()
"""
    yard = make_yard(
        env={
            "RUNYARD_MONITORING_INTERVAL": "0.2",
            "RUNYARD_STALL_MIN_S": "3",  # more than a pause of a busy machine
            "RUNYARD_STALL_ACTION": "stop",
        }
    ).start()
    ref = yard.submit(python(code), distributed=TWO, env_vars={"HERE": str(tmp_path)})
    job = yard.wait(ref, "failed", seconds=60)
    assert job["diagnosis"]["category"] == "comm_hang"
    [found] = yard.ask(f"/jobs/{ref}/explain")["evidence"]
    names = [name.rpartition("/")[2] for name in found["files"]]
    for rank in range(2):
        [stack] = [name for name in names if name.startswith(f"rank-{rank}-pid-")]
        path = next((yard.data / "attempts" / f"{ref}.1" / "evidence").glob(f"*/{stack}"))
        assert "waits_in_a_collective" in path.read_text()
    [alert] = yard.ask(f"/alerts?job={ref}&code=stalled_training")
    assert "rank 1\n" in alert["evidence"]["stacks"]


def test_metrics_of_every_rank_and_none_of_a_stale_one(yard):
    """R30, R34: each rank has series of its own; a rank of another attempt tells nothing."""
    code = """
import json, os
from runyard import report
rank = int(os.environ["RANK"])
for step in range(3):
    report.report(step=step, total=3, loss=10.0 * (rank + 1) - step)
if rank == 1:
    os.environ["RUNYARD_ATTEMPT_TOKEN"] = "0123456789abcdef"  # as one of an earlier attempt
    report.report(step=3, total=3, loss=999.0)
    with open(os.environ["RUNYARD_METRICS_FILE"], "a") as file:  # as another language would
        file.write(json.dumps({"step": 3, "accuracy": 0.5}) + "\\\\n")
"""
    ref = yard.submit(python(code.replace("\\\\n", "\\n")), distributed=TWO)
    yard.wait(ref, "completed")

    def series():
        found = yard.ask(f"/jobs/{ref}/metrics")["series"]
        read = {name: len(one["values"]) for name, one in found.items()}
        whole = read.get("loss", 0) >= 3 and read.get("accuracy.rank1", 0) >= 1
        return found if whole else None

    found = until(series, words=lambda: yard.ask(f"/jobs/{ref}/metrics"))
    assert found["loss"]["values"] == [10.0, 9.0, 8.0]
    assert found["loss.rank1"]["values"] == [20.0, 19.0, 18.0]
    assert found["accuracy.rank1"]["values"] == [0.5]


STAND_IN = """#!/bin/sh
# Stands in for torchrun: says how it was called, then starts the ranks as it would.
for word in "$@"; do echo "argument $word"; done
echo "token $RUNYARD_ATTEMPT_TOKEN"
"""


def test_torchrun_is_called_for_the_node(yard, tmp_path):
    """R30: one launcher on the node, with the port of the pool to meet at."""
    stand_in = tmp_path / "bin" / "torchrun"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    ref = yard.submit(
        "cd / && echo $RANK",
        distributed={"procs_per_node": 2, "launcher": "torchrun"},
        base_env={"PATH": f"{stand_in.parent}:{os.environ['PATH']}"},
    )
    job = yard.wait(ref, "completed")
    [port] = job["attempt"]["ports"]
    said = yard.logs(ref, rank=1)  # the launcher's log has what all its ranks say
    assert said[:-1] == [
        f"argument {word}"
        for word in (
            "--nnodes=1",
            "--nproc-per-node=2",
            "--node-rank=0",
            "--rdzv-backend=static",
            f"--rdzv-endpoint=127.0.0.1:{port}",
            f"--rdzv-id={ref}.1",
            "--max-restarts=0",
            "--local-addr=127.0.0.1",
            "--no-python",
            "/bin/sh",
            "-c",
            "cd / && echo $RANK",
        )
    ]
    assert said[-1] != "token "


def test_a_torchrun_that_is_not_there_is_told_before_the_start(yard):
    """R12: by the preflight, which runs for torchrun also without a GPU."""
    script = Path(yard.folder) / "train.py"
    script.write_text("print(1)\n")
    ref = yard.submit(
        [sys.executable, "-S", str(script)], distributed={**TWO, "launcher": "torchrun"}
    )
    job = yard.wait(ref, "failed")
    assert job["reason"]["code"] == "preparation_failed"
    assert job["reason"]["params"]["params"]["name"] == "torch"
    assert yard.attempts(ref) == []


def test_more_nodes_than_there_are_is_told_at_once(yard):
    """R50: this machine is one node, however large it is."""
    ref = yard.submit("true", distributed={"nodes": 2})

    def told():
        found = yard.job(ref)["wait"] or {}
        return found if found.get("code") == "never_fits" else None

    assert until(told, words=lambda: yard.job(ref))["params"]["wanted"] == 2


def test_the_command_line(yard):
    """R30: flags, logs of a rank, show tells the ranks."""
    done = yard.cli(
        *("run", "--gpus", 0, "--cpus", 0.01, "--mem", "10MB", "--retries", 0, "--name", "gang"),
        *("--nodes", 1, "--procs-per-node", 2, "--launcher", "env", "--placement", "pack"),
        *("--", "/bin/sh", "-c", "echo I am rank $RANK of $WORLD_SIZE"),
    )
    assert done.returncode == 0, done.stderr
    assert "I am rank 0 of 2" in done.stdout
    ref = yard.ask("/jobs")[0]["job_id"]
    assert yard.cli("logs", "--rank", 1, ref).stdout.strip() == "I am rank 1 of 2"
    shown = yard.cli("show", ref).stdout
    assert "2 (1 x 2, env)" in shown
    assert "0-1: exit 0" in shown
    assert yard.cli("logs", "--rank", 2, ref).returncode != 0


def test_the_example_of_the_guide(yard, tmp_path):
    """R30: as it is written there, by file and by flags."""
    for name, text in re.findall(r"```\w+\n# (\S+)\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(text)
    small = ("--cpus", "0.01", "--mem", "10MB", "--gpus", "0", "--workdir", tmp_path)
    ran = yard.cli("run", *small, "-f", tmp_path / "job.yaml", timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert "the sum of 4 ranks is 30" in ran.stdout
    ref = yard.ask("/jobs")[0]["job_id"]
    assert yard.job(ref)["job_type"] == "distributed"
    assert yard.cli("logs", "--rank", 2, ref).stdout.strip() == "rank 2 brought 9"
    by_flags = ("--procs-per-node", 3, "--", "python3", "add_up.py")
    ran = yard.cli("run", *small, *by_flags, timeout=120)
    assert "the sum of 3 ranks is 14" in ran.stdout
