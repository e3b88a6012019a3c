"""Jobs with an image, by a real server and a real podman behind its Docker-compatible socket."""

from __future__ import annotations

import os
import signal

import pytest

from docker_engine import IMAGE, host_places
from runyard.supervisor import journal
from yards import keeper_pid, keepers_of, kill9, until

pytestmark = [pytest.mark.xdist_group("podman"), pytest.mark.root]

SHARE = {"cpu_cores": 0.5}
LOOP = "echo up; while :; do sleep 0.1; done"
EAT = "x=$(head -c 400000000 /dev/zero | tr '\\0' x)"


@pytest.fixture
def make_podman_yard(make_yard):
    def make(engine):
        env = {
            "RUNYARD_DOCKER_HOST": engine.socket,
            "RUNYARD_DOCKER_NETWORK": "none",
            "RUNYARD_DOCKER_MOUNTS": ",".join(f"{place}:ro" for place in host_places()),
        }
        return make_yard(env=env)

    return make


@pytest.fixture
def yard(make_podman_yard, podman_engine):
    yield make_podman_yard(podman_engine).start()
    assert podman_engine.containers() == []


def run(yard, script, *states, **fields):
    ref = yard.submit(script, image=IMAGE, **{**SHARE, **fields})
    return ref, yard.wait(ref, *(states or ("completed",)), seconds=60)


def up(yard, script, **fields):
    """A job that said so."""
    ref = yard.submit(script, image=IMAGE, **{**SHARE, **fields})
    until(lambda: "up" in yard.logs(ref), 60, lambda: (yard.job(ref), yard.logs(ref)))
    yard.wait(ref, "running", seconds=60)
    return ref


def folder(yard, ref):
    return yard.data / "attempts" / f"{ref}.1"


def test_it_runs_in_its_image(yard):
    """R34: image, command, user, environment; its workspace is kept, its log is a file."""
    script = 'pwd; echo "$MINE"; id -u; touch "$HOME/x" "$TMPDIR/y"; echo text >kept; ls /'
    ref, job = run(yard, script, env_vars={"MINE": "my value"})
    lines = yard.logs(ref)
    assert lines[:3] == ["/workspace", "my value", str(os.getuid())]
    assert "root" not in lines[3:]  # the host's root has a folder of that name
    assert (yard.data / "outputs" / ref / "kept").read_text() == "text\n"
    assert (folder(yard, ref) / "out.log").read_text().splitlines() == lines
    assert job["executor"] == "docker"


def test_its_exit_code_is_told(yard):
    """R34: as the program gave it, with what it said before."""
    ref, job = run(yard, "echo said; echo wrong >&2; exit 3", "failed")
    assert job["reason"] == {"code": "exit_code", "params": {"code": 3}}
    assert yard.logs(ref) == ["said", "wrong"]


def test_it_gets_what_it_asked_for(yard, podman_engine):
    """R34: memory, CPUs, shared memory; no new rights, no privileges, no engine inside."""
    script = "grep -i nonewprivs /proc/self/status; df -m /dev/shm | tail -n 1; " + LOOP
    ref = up(yard, script, memory_gb=0.25)
    [container] = podman_engine.containers()
    seen = podman_engine.inspect(container)
    host = seen["HostConfig"]
    assert (host["Memory"], host["NanoCpus"]) == (256 * 1024**2, 500_000_000)
    assert (host["Privileged"], host["NetworkMode"]) == (False, "none")
    assert seen["Config"]["Labels"]["runyard.attempt"] == f"{ref}.1"
    assert not [m for m in seen["Mounts"] if podman_engine.socket_path.startswith(m["Source"])]
    privileges, shared = yard.logs(ref)[:2]
    assert privileges.split() == ["NoNewPrivs:", "1"]
    assert shared.split()[1] == "256"
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_cancel_with_grace_and_its_receipt(yard, podman_engine):
    """R41: told to end, then killed, then gone; the receipt proves it."""
    ref = up(yard, f"trap 'echo asked' TERM; {LOOP}", grace_s=0.5)
    answer = yard.cancel(ref)
    receipt = answer.body["receipt"]
    assert answer.body["status"] == "cancelled"
    assert [one["signal"] for one in receipt["signals"]] == ["TERM", "KILL"]
    assert {one["target"] for one in receipt["signals"]} == {"container"}
    assert receipt["proof"] == "container_removed"
    assert podman_engine.containers() == []
    assert "asked" in yard.logs(ref)


def test_cancel_reaches_the_whole_group(yard):
    """R41: also what a shell started, and its own exit code is kept."""
    ref = up(
        yard, f"trap 'wait; exit 5' TERM; sh -c \"trap 'echo inner; exit' TERM; {LOOP}\" & wait"
    )
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert "inner" in yard.logs(ref)
    assert yard.attempts(ref)[0]["exit_code"] == 5


def test_out_of_memory_is_told(yard):
    """R34: podman itself says nothing of it."""
    ref, job = run(yard, EAT, "failed", memory_gb=0.0625)
    assert job["reason"]["code"] == "oom"
    assert job["reason"]["params"]["limit_mb"] == 64
    assert yard.attempts(ref)[0]["diagnosis"]["category"] == "host_oom"


def test_a_kill_by_somebody_else_is_not_called_memory(yard, podman_engine):
    """R34: with a limit, 137 alone says nothing about memory."""
    ref = up(yard, LOOP, memory_gb=0.25)
    [container] = podman_engine.containers()
    podman_engine.docker("kill", container)
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "exit_code"
    assert job["reason"]["params"] == {"code": 137, "shell_signal": "SIGKILL"}


def test_the_server_is_killed_in_between(yard):
    """R43: what runs is adopted, what ended meanwhile has its exit code."""
    running = up(yard, f"trap 'exit 5' TERM; {LOOP}")
    ended = up(yard, "echo up; sleep 1; exit 9")
    yard.kill9()
    until(lambda: journal.read(str(folder(yard, ended))).exit, 60)
    yard.start()
    assert yard.wait(ended, "failed")["reason"] == {"code": "exit_code", "params": {"code": 9}}
    assert yard.status(running) == "running"
    assert yard.cancel(running).body["status"] == "cancelled"
    assert yard.attempts(running)[0]["exit_code"] == 5


def test_everybody_who_watched_is_killed(yard, podman_engine):
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
    assert podman_engine.containers() == []


def test_the_service_is_killed_in_between(yard, podman_engine):
    """R43: podman's containers need no service; the one that comes back knows their codes."""
    running = up(yard, f"trap 'exit 5' TERM; {LOOP}")
    ended = up(yard, "echo up; sleep 1; exit 9")
    podman_engine.kill9()
    until(lambda: not living(ended), 60)
    podman_engine.start_again()
    job = yard.wait(ended, "failed", seconds=60)
    assert job["reason"] == {"code": "exit_code", "params": {"code": 9}}
    assert yard.status(running) == "running"
    assert yard.cancel(running).body["status"] == "cancelled"
    assert yard.attempts(running)[0]["exit_code"] == 5


def test_without_an_init_of_its_own(make_podman_yard, podman_without_init):
    """R34: the job is process 1 then; its code, and a cancel with proof, are as always."""
    yard = make_podman_yard(podman_without_init).start()
    ref, job = run(yard, "echo $$; exit 3", "failed")
    assert job["reason"] == {"code": "exit_code", "params": {"code": 3}}
    assert yard.logs(ref) == ["1"]
    ref = up(yard, f"trap 'exit 5' TERM; {LOOP}")
    assert yard.cancel(ref).body["receipt"]["proof"] == "container_removed"
    assert yard.attempts(ref)[0]["exit_code"] == 5
    assert podman_without_init.containers() == []


def living(ref):
    """Processes of its container: they have its marker, also outside of it."""
    marker = f"RUNYARD_ATTEMPT_ID={ref}.1".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if marker in words and b"RUNYARD_JOB_ID=" + ref.encode() in words:
            found.append(int(name))
    return found
