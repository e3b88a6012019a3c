"""Gangs when things die in between: supervisors at every step, disks, services (R41, R42)."""

import os
import signal
import sys

import pytest
from keeper_yard import Alive, Yard, wait_for

from runyard.supervisor import keeper_client, process_table, rank_records, reconcile
from small_disk import fill, small_disk
from yards import free_port

STEPS = (
    "locked",
    "supervisor_record",
    "forked",
    "job_record",
    "go",
    "peeked",
    "main_exit",
    "tree_empty",
    "exit_record",
)
# Leaves a child in its own session; rank 1 fails, the others end well.
LEAVER = "setsid sleep 600 & [ $RANK = 1 ] && exit 42; exit 0"


def ranks_of(count):
    return [
        {"rank": rank, "local_rank": rank, "env": {"RANK": str(rank)}} for rank in range(count)
    ]


def true_or_null(end):
    """What each rank really did, or that nobody knows."""
    really = {0: (0, None), 1: (42, None), 2: (0, None)}
    killed = (None, signal.SIGKILL)
    for one in end["ranks"]:
        seen = (one["code"], one["signal"])
        assert seen in (really[one["rank"]], killed, (None, None)), end
    assert (end["code"], end["signal"]) in ((42, None), killed, (None, None))


@pytest.mark.parametrize("step", STEPS)
def test_supervisor_kill9_at_every_step(yard, step):
    """R42: no rank survives, one record, no exit code is invented; the keeper takes over."""
    alive = Alive(yard.data_dir, "alive")
    attempt = yard.start(
        ["/bin/sh", "-c", f"exec 9>{alive.path}; {LEAVER}"],
        ranks=ranks_of(3),
        gang_grace_s=60.0,
        testing={"die_after": step},
    )
    end = yard.wait_end(attempt)
    alive.wait_all_dead()
    true_or_null(end)
    if step in ("locked", "supervisor_record", "forked"):
        assert end["cause"] == "never_started"
        assert not os.path.exists(f"{yard.folder(attempt)}/out.log")
    if step in ("tree_empty", "exit_record"):
        assert (end["code"], end["rank"]) == (42, 1)
    assert end["by"] == ("supervisor" if step == "exit_record" else "keeper")


@pytest.mark.parametrize("step", ["job_record", "go", "main_exit", "tree_empty"])
def test_supervisor_and_keeper_kill9(yard, step):
    """R42: whoever looks next settles it by the journal alone."""
    alive = Alive(yard.data_dir, "alive")
    attempt = yard.prepare(
        ["/bin/sh", "-c", f"exec 9>{alive.path}; {LEAVER}"],
        ranks=ranks_of(3),
        gang_grace_s=60.0,
        testing={"die_after": step},
    )
    yard.keeper.ensure()
    keeper = yard.keeper_pid()
    supervisors = process_table.children(keeper)
    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)
    yard.keeper.run(attempt)
    wait_for(lambda: attempt in yard.keeper.list()["attempts"], "the hand-over")
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's death")
    for pid in supervisors:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: not any(map(process_table.alive, supervisors)), "their deaths")
    end = reconcile.settle(yard.folder(attempt))
    yard.check_ended(attempt)
    alive.wait_all_dead()
    true_or_null(end)
    assert reconcile.settle(yard.folder(attempt)) == end


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount")
def test_a_full_disk_loses_no_end_of_a_rank(tmp_path):
    """The room for the ends of all ranks was reserved at the start."""
    with small_disk(tmp_path / "disk", 2) as place:
        yard = Yard(place)
        attempt = yard.start(["/bin/sleep", "600"], ranks=ranks_of(16), gang_grace_s=0.2)
        yard.hear(attempt, "started")
        fill(place / "filler")
        victim = [one for one in rank_records.states(yard.journal(attempt)) if one["rank"] == 5]
        os.kill(victim[0]["pid"], signal.SIGKILL)
        end = yard.wait_end(attempt)
        assert (end["rank"], end["signal"], end["by"]) == (5, signal.SIGKILL, "supervisor")
        assert [one["signal"] for one in end["ranks"]].count(signal.SIGTERM) == 15
        (place / "filler").unlink()
        yard.close()


def test_services_beside_a_gang(yard):
    """R50: ready before any rank runs; ended after the last, also when the gang fails."""
    alive = Alive(yard.data_dir, "alive")
    story = f"{yard.data_dir}/story"
    port = free_port()
    environment = {"ALIVE": alive.path, "STORY": story, "RUNYARD_PORT": str(port)}
    code = (
        "import http.server, os, sys;"
        "fd = os.open(os.environ['ALIVE'], os.O_WRONLY);"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])),"
        " http.server.BaseHTTPRequestHandler).serve_forever()"
    )
    service = {
        "name": "helper",
        "argv": [sys.executable, "-I", "-S", "-c", code, str(port)],
        "env": {},
        "port": port,
        "health": "tcp",
        "ready_timeout_s": 30.0,
        "restart": "never",
    }
    attempt = yard.start(
        ["/bin/sh", "-c", "exec 9>$ALIVE; [ $RANK = 1 ] && exit 3; while :; do sleep 0.05; done"],
        env=environment,
        ranks=ranks_of(2),
        gang_grace_s=0.1,
        services=[service],
    )
    end = yard.wait_end(attempt)
    alive.wait_all_dead()
    assert (end["code"], end["rank"]) == (3, 1)
    assert [one["name"] for one in end["services"]] == ["helper"]
    kinds = [one["kind"] for one in yard.journal(attempt).records]
    assert kinds.index("service_ready") < kinds.index("job")


def test_many_ranks(yard):
    """R30: as many as a large machine has GPUs, twice over."""
    attempt = yard.start(["/bin/sh", "-c", "echo $RANK"], ranks=ranks_of(32))
    end = yard.wait_end(attempt)
    assert [one["code"] for one in end["ranks"]] == [0] * 32
    for rank in (0, 31):
        name = f"rank-{rank}.log" if rank else "out.log"
        with open(f"{yard.folder(attempt)}/{name}") as file:
            assert file.read() == f"{rank}\n"


def test_a_supervisor_takes_the_next_attempt_after_a_gang(yard):
    """What a gang needed is gone with it: a plain job follows in the same process."""
    first = yard.start(["/bin/true"], ranks=ranks_of(4))
    yard.wait_end(first)
    for _ in range(4):
        again = yard.start(["/bin/sh", "-c", "exit 7"])
        end = yard.wait_end(again)
        assert (end["code"], "ranks" in end) == (7, False)


def test_a_stopped_supervisor_of_a_gang_is_swept_when_asked(yard):
    """R41: a supervisor that hangs is let go on, and its ranks are ended."""
    alive = Alive(yard.data_dir, "alive")
    deaf = f"{yard.data_dir}/deaf"
    script = f"exec 9>{alive.path}; trap '' TERM; touch {deaf}$RANK; "
    script += "while :; do sleep 0.05; done"
    attempt = yard.start(["/bin/sh", "-c", script], ranks=ranks_of(2))
    wait_for(lambda: all(os.path.exists(f"{deaf}{rank}") for rank in range(2)), "both ranks")
    yard.hear(attempt, "started")
    os.kill(yard.supervisor_pid(attempt), signal.SIGSTOP)
    yard.stop(attempt, grace_s=600)  # so that it is not the supervisor that ends them
    folder = yard.folder(attempt)
    killed, _ = reconcile.sweep_asked([folder])[folder]
    assert killed >= 2
    yard.wait_end(attempt)
    alive.wait_all_dead()
    assert reconcile.sweep_asked([folder])[folder] == (0, [])
