"""What a job with an image is promised, engine by engine; the names are those of the list in
docs/containment.md. test_image_jobs.py has what else must be the same on both."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from docker_engine import DockerEngine
from image_jobs import LOOP, folder, run, settings_for, up, up_until_told
from runyard.executors.docker_containers import Containers
from runyard.executors.docker_plan import DockerOptions
from runyard.executors.docker_runner import Runner
from runyard.supervisor import journal
from runyard.supervisor.engine_http import Engine, EngineRefused
from yards import RunningYard, until

pytestmark = pytest.mark.root


@dataclass(frozen=True)
class Served:
    """A server whose containers are those of an engine."""

    yard: RunningYard
    engine: DockerEngine


@pytest.fixture
def docker(make_yard, docker_engine):
    yield Served(make_yard(env=settings_for(docker_engine)).start(), docker_engine)
    assert docker_engine.containers() == []


@pytest.fixture
def podman(make_yard, podman_engine):
    yield Served(make_yard(env=settings_for(podman_engine)).start(), podman_engine)
    assert podman_engine.containers() == []


def test_engine_docker_run(docker):
    check_run(docker.yard)


def test_engine_podman_run(podman):
    check_run(podman.yard)


def check_run(yard):
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


def test_engine_docker_code(docker):
    check_code(docker.yard)


def test_engine_podman_code(podman):
    check_code(podman.yard)


def check_code(yard):
    """R34: as the program gave it, with what it said before."""
    ref, job = run(yard, "echo said; echo wrong >&2; exit 3", "failed")
    assert job["reason"] == {"code": "exit_code", "params": {"code": 3}}
    assert yard.logs(ref) == ["said", "wrong"]


def test_engine_docker_oom(docker):
    check_oom(docker.yard)


def test_engine_podman_oom(podman):
    check_oom(podman.yard)


def check_oom(yard):
    """R34: told whether the engine says so or not."""
    script = "x=$(head -c 400000000 /dev/zero | tr '\\0' x)"
    ref, job = run(yard, script, "failed", memory_gb=0.0625)
    assert job["reason"]["code"] == "oom"
    assert job["reason"]["params"]["limit_mb"] == 64
    [attempt] = yard.attempts(ref)
    assert attempt["diagnosis"]["category"] == "host_oom"


def test_engine_docker_stop(docker):
    check_stop(docker)


def test_engine_podman_stop(podman):
    check_stop(podman)


def check_stop(served):
    """R41: told to end, then killed, then gone; the receipt proves it."""
    yard = served.yard
    ref = up(yard, f"trap 'echo asked' TERM; {LOOP}", grace_s=3)
    answer = yard.cancel(ref)
    receipt = answer.body["receipt"]
    assert answer.body["status"] == "cancelled"
    assert [one["signal"] for one in receipt["signals"]] == ["TERM", "KILL"]
    assert {one["target"] for one in receipt["signals"]} == {"container"}
    assert receipt["proof"] == "container_removed"
    assert served.engine.containers() == []
    assert "asked" in yard.logs(ref)


def test_engine_docker_kill(docker):
    check_kill(docker)


def test_engine_podman_kill(podman):
    check_kill(podman)


def check_kill(served):
    """R41: by force nothing is asked, all of it dies at once, and that is proven too."""
    yard = served.yard
    many = "i=0; while [ $i -lt 20 ]; do sleep 600 & i=$((i+1)); done"
    ref = up(yard, f"trap 'echo asked' TERM; {many}; {LOOP}", grace_s=60)
    answer = yard.api("POST", f"/jobs/{ref}/force-kill?wait=60", timeout=80)
    receipt = answer.body["receipt"]
    assert answer.body["status"] == "cancelled"
    assert [one["signal"] for one in receipt["signals"]] == ["KILL"]
    assert receipt["proof"] == "container_removed"
    assert served.engine.containers() == []
    assert "asked" not in yard.logs(ref)


def test_engine_docker_ended_409(docker_engine):
    check_ended_409(docker_engine, 409)


def test_engine_podman_ended_409(podman_engine):
    check_ended_409(podman_engine, 409, 500)


def check_ended_409(engine, *answers):
    """R41: an engine refuses to kill what has ended; for us, it is what was wanted, and its own
    exit code stays."""
    with engine.container("sh", "-c", "exit 7") as name:
        until(lambda: not engine.inspect(name)["State"]["Running"], 60)
        with pytest.raises(EngineRefused) as refused:
            Engine(engine.socket_path).call("POST", f"/containers/{name}/kill")
        assert refused.value.status in answers
        containers = Containers(DockerOptions(sockets=(engine.socket_path,)), "node-1")
        try:
            assert containers.kill(name)["State"]["ExitCode"] == 7
        finally:
            containers.close()
        runner = Runner({"socket": engine.socket_path, "name": name}, "/nowhere")
        runner._kill()
        assert engine.inspect(name)["State"]["ExitCode"] == 7


def test_engine_docker_adopt_after_server_kill9(docker):
    check_adoption(docker.yard)


def test_engine_podman_adopt_after_server_kill9(podman):
    check_adoption(podman.yard)


def check_adoption(yard):
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
