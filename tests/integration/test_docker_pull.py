"""Images that are not here yet, pulled from a registry of this test."""

from __future__ import annotations

import os

import pytest

from image_jobs import SHARE, settings_for
from image_registry import ImageRegistry, padded
from runyard.supervisor import process_table
from yards import all_pids, until

pytestmark = [pytest.mark.xdist_group("docker"), pytest.mark.root]

_PADDING = 8 * 1024 * 1024


@pytest.fixture
def registry(docker_engine):
    # What cannot be packed: half of it is still megabytes.
    made = ImageRegistry(padded(docker_engine.archive, os.urandom(_PADDING)))
    yield made
    made.close()
    listed = docker_engine.docker("images", "--quiet", f"{made.address}/*").stdout.split()
    if listed:
        docker_engine.docker("rmi", "--force", *set(listed), check=False)


@pytest.fixture
def yard(make_yard, docker_engine):
    yield make_yard(env=settings_for(docker_engine)).start()
    assert docker_engine.containers() == []


def test_an_image_is_pulled_once(yard, registry):
    """R34: the second job finds it, and asks nobody."""
    image = f"{registry.address}/trainer:1"
    first = yard.submit('echo "from image: $FROM_IMAGE"', image=image, **SHARE)
    yard.wait(first, "completed", seconds=60)
    assert yard.logs(first) == ["from image: yes"]
    asked = len(registry.asked)
    assert asked > 2
    second = yard.submit("true", image=image, **SHARE)
    yard.wait(second, "completed", seconds=60)
    assert len(registry.asked) == asked


def pulling(yard, registry):
    registry.hold.set()
    ref = yard.submit("echo ran", image=f"{registry.address}/trainer:2", **SHARE)

    def half() -> bool:
        told = yard.job(ref)["reason"]["params"]
        return told.get("bytes_total", 0) > told.get("bytes_done", 0) > 0

    until(half, 60, lambda: yard.job(ref)["reason"])
    return ref


def test_how_far_a_pull_is_told(yard, registry):
    """R34: while it is pulled the job is scheduled, and says how far that is."""
    ref = pulling(yard, registry)
    job = yard.job(ref)
    assert (job["status"], job["stage"]) == ("scheduled", "starting")
    assert job["reason"]["code"] == "starting_container"
    said = yard.cli("show", ref).stdout
    assert f"starting a container of {registry.address}/trainer:2: " in said
    registry.hold.clear()
    yard.wait(ref, "completed", seconds=60)
    assert yard.logs(ref) == ["ran"]


def test_a_pull_is_cancelled(yard, registry, docker_engine):
    """R34, R41: nobody pulls any more, nothing ran, and what was begun is not taken for whole."""
    ref = pulling(yard, registry)
    image = yard.job(ref)["image"]
    assert pullers(image)
    answer = yard.cancel(ref)
    assert (answer.body["status"], answer.body["receipt"]["stage"]) == ("cancelled", "starting")
    assert pullers(image) == []
    assert yard.logs(ref) == []
    assert yard.attempts(ref)[0]["exit_code"] is None
    registry.hold.clear()
    until(lambda: "context canceled" in docker_engine.said(), 60, docker_engine.said)
    assert docker_engine.docker("images", "--quiet", f"{registry.address}/trainer").stdout == ""


def pullers(image):
    """Processes of ours that have an engine pull it."""
    found = []
    for pid in all_pids():
        words = process_table.command_line(pid).split(b"\0")
        if image.encode() in words and any(word.endswith(b"docker_pull.py") for word in words):
            found.append(pid)
    return found


def test_an_image_that_is_nowhere(yard, registry):
    ref = yard.submit("true", image=f"{registry.address}/missing:1", **SHARE)
    job = yard.wait(ref, "failed", seconds=60)
    assert job["reason"]["code"] == "start_failed"
    params = job["reason"]["params"]
    assert params["path"] == f"{registry.address}/missing:1"
    assert "manifest" in params["message"]


def test_an_image_that_must_not_be_pulled(make_yard, docker_engine, registry):
    env = {"RUNYARD_DOCKER_HOST": docker_engine.socket, "RUNYARD_DOCKER_PULL": "never"}
    yard = make_yard(env=env).start()
    ref = yard.submit("true", image=f"{registry.address}/trainer:3", **SHARE)
    job = yard.wait(ref, "failed", seconds=60)
    assert "No such image" in job["reason"]["params"]["message"]
    assert registry.asked == []
