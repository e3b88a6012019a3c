"""Jobs with an image, by a real server and a real engine."""

from __future__ import annotations

import os
import signal

import pytest

from docker_engine import IMAGE, UID, host_places
from runyard.supervisor import journal
from yards import SMALL, keeper_pid, keepers_of, kill9, until

pytestmark = [pytest.mark.xdist_group("docker"), pytest.mark.root]

SHARE = {"cpu_cores": 0.5}  # containers get what they asked for, and no more
LOOP = "echo up; while :; do sleep 0.1; done"


@pytest.fixture
def make_docker_yard(make_yard, docker_engine):
    def make(engine=docker_engine, **settings):
        env = {
            "RUNYARD_DOCKER_HOST": engine.socket,
            "RUNYARD_DOCKER_NETWORK": "none",
            "RUNYARD_DOCKER_MOUNTS": ",".join(f"{place}:ro" for place in host_places()),
        }
        return make_yard(env=env | settings)

    return make


@pytest.fixture
def yard(make_docker_yard, docker_engine):
    yield make_docker_yard().start()
    assert docker_engine.containers() == []


def run(yard, script, *states, **fields):
    ref = yard.submit(script, image=IMAGE, **{**SHARE, **fields})
    return ref, yard.wait(ref, *(states or ("completed",)), seconds=60)


def up(yard, script, **fields):
    """A job that said so."""
    ref = yard.submit(script, image=IMAGE, **{**SHARE, **fields})
    until(lambda: "up" in yard.logs(ref), 60, lambda: (yard.job(ref), yard.logs(ref)))
    yard.wait(ref, "running")
    return ref


def folder(yard, ref):
    return yard.data / "attempts" / f"{ref}.1"


def test_it_runs_in_its_image(yard):
    """R34: image, command, working directory, environment; its workspace is kept."""
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
    assert job["executor"] == "docker"
    [attempt] = yard.attempts(ref)
    assert (attempt["executor"], attempt["exit_code"]) == ("docker", 0)


def test_it_gets_what_it_asked_for(yard, docker_engine):
    """R34: memory, CPUs, shared memory; no new rights, no privileges, no engine inside."""
    ref = up(yard, LOOP, cpu_cores=0.5, memory_gb=0.25)
    [container] = docker_engine.containers()
    seen = docker_engine.inspect(container)
    host = seen["HostConfig"]
    assert (host["Memory"], host["NanoCpus"]) == (256 * 1024**2, 500_000_000)
    assert host["ShmSize"] == 256 * 1024**2
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert (host["Privileged"], host["NetworkMode"]) == (False, "none")
    assert not [m for m in seen["Mounts"] if docker_engine.socket_path.startswith(m["Source"])]
    assert seen["Config"]["Labels"]["runyard.attempt"] == f"{ref}.1"
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_out_of_memory_is_told(yard):
    """R34: by the kernel, as the engine saw it."""
    script = "x=$(head -c 400000000 /dev/zero | tr '\\0' x)"
    ref, job = run(yard, script, "failed", memory_gb=0.0625)
    assert job["reason"]["code"] == "oom"
    assert job["reason"]["params"]["limit_mb"] == 64
    [attempt] = yard.attempts(ref)
    assert attempt["diagnosis"]["category"] == "host_oom"


def test_cancel_with_grace_and_its_receipt(yard, docker_engine):
    """R41: told to end, then killed, then gone; the receipt proves it."""
    ref = up(yard, f"trap 'echo asked' TERM; {LOOP}", grace_s=0.5)
    answer = yard.cancel(ref)
    receipt = answer.body["receipt"]
    assert answer.body["status"] == "cancelled"
    assert [one["signal"] for one in receipt["signals"]] == ["TERM", "KILL"]
    assert {one["target"] for one in receipt["signals"]} == {"container"}
    assert receipt["proof"] == "container_removed"
    assert docker_engine.containers() == []
    assert "asked" in yard.logs(ref)


def test_the_server_is_killed_in_between(yard):
    """R43: what runs is adopted, what ended meanwhile has its exit code."""
    running = up(yard, f"trap 'exit 5' TERM; {LOOP}")
    going = yard.data.parent / "going"
    ended = up(yard, "echo up; sleep 1; exit 9")
    yard.kill9()
    until(lambda: journal.read(str(folder(yard, ended))).exit, 60, going)
    yard.start()
    assert yard.wait(ended, "failed")["reason"] == {"code": "exit_code", "params": {"code": 9}}
    assert yard.status(running) == "running"
    assert yard.cancel(running).body["status"] == "cancelled"
    assert yard.attempts(running)[0]["exit_code"] == 5


def test_everybody_who_watched_is_killed(yard, docker_engine):
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
    assert docker_engine.containers() == []


def test_shutdown_ends_containers(yard, docker_engine):
    """R44: a plain stop of the server leaves no container."""
    ref = up(yard, f"trap 'exit 0' TERM; {LOOP}")
    assert yard.terminate(60) == 0
    assert docker_engine.containers() == []
    assert journal.read(str(folder(yard, ref))).exit is not None


def test_a_container_that_nobody_knows_is_removed(yard, docker_engine):
    """Of a server that lost its folders; those of other servers are left alone."""
    server = (yard.data / "server.id").read_text().strip()
    made = [
        docker_engine.docker(
            *("run", "--detach", "--network", "none", "--label", f"runyard.server={owner}"),
            *("--label", "runyard.attempt=job-gone.1"),
            *("--mount", "type=bind,source=/usr,target=/usr,readonly", IMAGE, "sleep", "600"),
        ).stdout.strip()
        for owner in (server, "somebody-else")
    ]
    try:
        yard.kill9()
        yard.start()
        until(lambda: docker_engine.containers() == [made[1]], 60, docker_engine.containers)
    finally:
        docker_engine.docker("rm", "--force", *made, check=False)


def test_as_another_user(make_docker_yard):
    """R34: user mapping; its log and its workspace are still its own."""
    yard = make_docker_yard(RUNYARD_DOCKER_USER=f"{UID}:{UID}").start()
    ref, _ = run(yard, 'id -u; echo x >kept; echo y >"$TMPDIR/y"; echo z >&2')
    assert yard.logs(ref) == [str(UID), "z"]
    assert (yard.data / "outputs" / ref / "kept").stat().st_uid == UID


def test_the_engine_is_never_inside(make_docker_yard, docker_engine):
    """R34: a folder with the engine's socket in it is refused, and nothing runs."""
    yard = make_docker_yard().start()
    ref, job = run(yard, "echo ran", "failed", output_path=str(docker_engine.folder))
    assert job["reason"]["code"] == "start_failed"
    assert "socket" in job["reason"]["params"]["message"]
    assert "ran" not in yard.logs(ref)


def test_no_engine(make_yard):
    """A clear reason, in the API and in words."""
    yard = make_yard(env={"RUNYARD_DOCKER_HOST": "unix:///nowhere/docker.sock"}).start()
    ref = yard.submit("true", image=IMAGE)
    wanted = {"executor": "docker", "why": "no_engine", "at": "/nowhere/docker.sock"}
    job = until(lambda: (now := yard.job(ref))["reason"]["code"] != "queued" and now)
    assert job["reason"] == {"code": "executor_unavailable", "params": wanted}
    said = yard.cli("show", ref).stdout
    assert "no container engine listens at /nowhere/docker.sock" in said
    plain = yard.submit(["true"])
    yard.wait(plain, "completed")


def test_docker_needs_an_image(yard):
    answer = yard.api("POST", "/jobs", {**SMALL, "command": "true", "executor": "docker"})
    assert answer.status == 422
    assert "container_needs_image" in answer.data.decode()


def test_metrics_and_checkpoints_are_seen(yard):
    """R34: by their paths inside, which are those outside."""
    script = (
        'echo \'{"step": 1, "loss": 0.5}\' >>$RUNYARD_METRICS_FILE; '
        'mkdir -p /workspace/checkpoints/checkpoint-1; echo "$RUNYARD_RESUME_FROM"'
    )
    ref, _ = run(yard, script)
    series = until(lambda: yard.ask(f"/jobs/{ref}/metrics")["series"].get("loss"))
    assert series["values"] == [0.5]
    assert (yard.data / "outputs" / ref / "checkpoints" / "checkpoint-1").is_dir()


def test_fetched_files_can_only_be_read(yard, tmp_path):
    """R34: a dataset is there by its name, and stays as it is."""
    data = tmp_path / "data.txt"
    data.write_text("as it was\n")
    script = (
        "cat $RUNYARD_PREFETCH_DIR/data.txt; "
        "echo changed >>$RUNYARD_PREFETCH_DIR/data.txt || echo refused; "
        "touch $RUNYARD_PREFETCH_DIR/new || echo refused"
    )
    ref, _ = run(yard, script, prefetch=[f"file://{data}"])
    lines = yard.logs(ref)
    assert lines[0] == "as it was"
    assert lines.count("refused") == 2
    assert data.read_text() == "as it was\n"
