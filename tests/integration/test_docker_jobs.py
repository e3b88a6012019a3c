"""Jobs with an image where one engine speaks for all; test_image_jobs.py has what may differ."""

from __future__ import annotations

import pytest

from docker_engine import IMAGE, UID
from image_jobs import LOOP, folder, run, settings_for, up
from runyard.supervisor import journal
from yards import SMALL, until

pytestmark = pytest.mark.root


@pytest.fixture
def make_docker_yard(make_yard, docker_engine):
    def make(**settings):
        return make_yard(env=settings_for(docker_engine) | settings)

    return make


@pytest.fixture
def yard(make_docker_yard, docker_engine):
    yield make_docker_yard().start()
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


def test_no_other_engine_is_inside_either(make_docker_yard, tmp_path):
    """R34: nor the place where the server's user would have a podman, whether it runs or not."""
    place = tmp_path / "runtime" / "podman"
    place.mkdir(parents=True)
    yard = make_docker_yard(XDG_RUNTIME_DIR=str(place.parent)).start()
    ref, job = run(yard, "echo ran", "failed", output_path=str(place))
    assert job["reason"]["code"] == "start_failed"
    assert job["reason"]["params"]["path"] == str(place)
    assert "ran" not in yard.logs(ref)


@pytest.mark.parametrize("configured", [True, False])
def test_no_engine(make_yard, configured):
    """A clear reason, in the API and in words, also where nobody named an engine."""
    socket = "unix:///nowhere/docker.sock"
    named = {"RUNYARD_DOCKER_HOST": socket} if configured else {"RUNYARD_DOCKER_HOST": ""}
    yard = make_yard(env={**named, "DOCKER_HOST": socket}).start()
    ref = yard.submit("true", image=IMAGE)
    params = {"executor": "docker", "why": "no_engine", "at": "/nowhere/docker.sock"}
    wanted = {"code": "executor_unavailable", "params": params}
    until(lambda: yard.job(ref)["reason"] == wanted, words=lambda: yard.job(ref)["reason"])
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
