"""Jobs with an image, by a real server: the same on a real Docker and a real podman."""

from __future__ import annotations

import os
import signal

import pytest

from image_jobs import LOOP, folder, run, settings_for, up, up_until_told
from runyard.supervisor import journal, process_table
from yards import keeper_pid, keepers_of, kill9, until

pytestmark = pytest.mark.root


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request):
    return request.getfixturevalue(f"{request.param}_engine")


@pytest.fixture
def yard(make_yard, engine):
    yield make_yard(env=settings_for(engine)).start()
    assert engine.containers() == []


def test_it_runs_in_its_image(yard):
    """R34: image, command, working directory, user, environment; its workspace is kept, its log
    is a file."""
    script = 'pwd; echo "$MINE"; id -u; touch "$HOME/x" "$TMPDIR/y"; echo text >kept; ls /; env'
    ref, job = run(yard, script, env_vars={"MINE": "my value"})
    lines = yard.logs(ref)
    assert lines[:3] == ["/workspace", "my value", str(os.getuid())]
    assert "workspace" in lines
    assert "root" not in lines[3:]  # the host's root has a folder of that name
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    assert env["RUNYARD_JOB_ID"] == ref
    assert env["CUDA_VISIBLE_DEVICES"] == ""
    output = yard.data / "outputs" / ref
    assert env["RUNYARD_OUTPUT_DIR"] == str(output)
    assert (output / "kept").read_text() == "text\n"
    assert (output / "checkpoints").is_dir()
    assert (folder(yard, ref) / "out.log").read_text().splitlines() == lines
    assert job["executor"] == "docker"
    [attempt] = yard.attempts(ref)
    assert (attempt["executor"], attempt["exit_code"]) == ("docker", 0)


def test_its_exit_code_is_told(yard):
    """R34: as the program gave it, with what it said before."""
    ref, job = run(yard, "echo said; echo wrong >&2; exit 3", "failed")
    assert job["reason"] == {"code": "exit_code", "params": {"code": 3}}
    assert yard.logs(ref) == ["said", "wrong"]


def test_it_gets_what_it_asked_for(yard, engine):
    """R34: memory, CPUs, shared memory; no new rights, no privileges, no engine inside."""
    script = "grep -i nonewprivs /proc/self/status; df -m /dev/shm | tail -n 1; " + LOOP
    ref = up(yard, script, cpu_cores=0.5, memory_gb=0.25)
    [container] = engine.containers()
    seen = engine.inspect(container)
    host = seen["HostConfig"]
    assert (host["Memory"], host["NanoCpus"]) == (256 * 1024**2, 500_000_000)
    assert (host["Privileged"], host["NetworkMode"]) == (False, "none")
    assert seen["Config"]["Labels"]["runyard.attempt"] == f"{ref}.1"
    assert not [m for m in seen["Mounts"] if engine.socket_path.startswith(m["Source"])]
    privileges, shared = yard.logs(ref)[:2]
    assert privileges.split() == ["NoNewPrivs:", "1"]
    assert shared.split()[1] == "256"
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_its_processes_are_known_from_outside(yard, engine):
    """R42: what runs inside has the attempt's tag, whatever it does to its environment; an
    innocent container of the same engine has none."""
    ref = up(yard, f"env -i sh -c '{LOOP}' & wait")
    record = journal.read(str(folder(yard, ref)))
    [container] = engine.containers()
    first = engine.inspect(container)["State"]["Pid"]
    inside = process_table.descendants(first)
    assert len(inside) >= 2
    # The engine's own init may be the first process; it is not the job's.
    assert {process_table.tag(pid) for pid in inside} == {record.spec["tag"]}
    with engine.container("sleep", "600") as innocent:
        pid = engine.inspect(innocent)["State"]["Pid"]
        assert process_table.tag(pid) is None
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_out_of_memory_is_told(yard):
    """R34: whether the engine says so or not."""
    script = "x=$(head -c 400000000 /dev/zero | tr '\\0' x)"
    ref, job = run(yard, script, "failed", memory_gb=0.0625)
    assert job["reason"]["code"] == "oom"
    assert job["reason"]["params"]["limit_mb"] == 64
    [attempt] = yard.attempts(ref)
    assert attempt["diagnosis"]["category"] == "host_oom"


def test_a_kill_by_somebody_else_is_not_called_memory(yard, engine):
    """R34: with a limit, 137 alone says nothing about memory."""
    ref = up(yard, LOOP, memory_gb=0.25)
    [container] = engine.containers()
    engine.docker("kill", container)
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "exit_code"
    assert job["reason"]["params"] == {"code": 137, "shell_signal": "SIGKILL"}


def test_cancel_with_grace_and_its_receipt(yard, engine):
    """R41: told to end, then killed, then gone; the receipt proves it."""
    ref = up(yard, f"trap 'echo asked' TERM; {LOOP}", grace_s=3)
    answer = yard.cancel(ref)
    receipt = answer.body["receipt"]
    assert answer.body["status"] == "cancelled"
    assert [one["signal"] for one in receipt["signals"]] == ["TERM", "KILL"]
    assert {one["target"] for one in receipt["signals"]} == {"container"}
    assert receipt["proof"] == "container_removed"
    assert engine.containers() == []
    assert "asked" in yard.logs(ref)


def test_cancel_reaches_the_whole_group(yard):
    """R41: also what a shell started, and its own exit code is kept."""
    ref = up(
        yard, f"trap 'wait; exit 5' TERM; sh -c \"trap 'echo inner; exit' TERM; {LOOP}\" & wait"
    )
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert "inner" in yard.logs(ref)
    assert yard.attempts(ref)[0]["exit_code"] == 5


def test_the_server_is_killed_in_between(yard):
    """R43: what runs is adopted, what ended meanwhile has its exit code."""
    running = up(yard, f"trap 'exit 5' TERM; {LOOP}")
    ended, go = up_until_told(yard, 9)
    yard.kill9()
    go.touch()
    until(lambda: journal.read(str(folder(yard, ended))).exit, 60)
    yard.start()
    assert yard.wait(ended, "failed")["reason"] == {"code": "exit_code", "params": {"code": 9}}
    assert yard.status(running) == "running"
    assert yard.cancel(running).body["status"] == "cancelled"
    assert yard.attempts(running)[0]["exit_code"] == 5


def test_everybody_who_watched_is_killed(yard, engine):
    """R43, R54: server, keeper, supervisor and runner; the next server ends the container."""
    ref = up(yard, f"trap '' TERM; {LOOP}", max_retries=0)
    records = journal.read(str(folder(yard, ref)))
    yard.kill9()
    os.kill(keeper_pid(yard.data), signal.SIGKILL)
    kill9(records.supervisor)
    until(lambda: len(keepers_of(yard.data)) == 0)
    yard.start()
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "supervisor_lost"
    assert yard.attempts(ref)[0]["exit_code"] is None
    assert engine.containers() == []
