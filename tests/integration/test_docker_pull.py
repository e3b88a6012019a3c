"""Images that are not here yet, pulled from a registry of this test."""

from __future__ import annotations

import os

import pytest

from image_jobs import SHARE, settings_for
from image_registry import ImageRegistry, padded
from runyard.supervisor import process_table
from yards import all_pids, until

pytestmark = pytest.mark.root

_PADDING = 8 * 1024 * 1024


@pytest.fixture
def registry(docker_engine):
    # What cannot be packed: half of it is still megabytes.
    made = ImageRegistry(padded(docker_engine.archive, os.urandom(_PADDING)))
    yield made
    if not made.closed:
        made.close()
    listed = docker_engine.docker("images", "--quiet", f"{made.address}/*").stdout.split()
    if listed:
        docker_engine.docker("rmi", "--force", *set(listed), check=False)


@pytest.fixture
def make_docker_yard(make_yard, docker_engine):
    def make(max_concurrent=4, **settings):
        env = settings_for(docker_engine) | settings
        return make_yard(env=env, max_concurrent=max_concurrent).start()

    yield make
    assert docker_engine.containers() == []


@pytest.fixture
def yard(make_docker_yard):
    return make_docker_yard()


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
    until(lambda: is_half_done(yard, ref), 60, lambda: yard.job(ref)["reason"])
    return ref


def is_half_done(yard, ref):
    told = yard.job(ref)["reason"]["params"]
    return told.get("bytes_total", 0) > told.get("bytes_done", 0) > 0


def layers(registry):
    """How often the image's one layer was asked for."""
    return sum(path.endswith(registry.layer) for path in registry.asked)


def test_how_far_a_pull_is_told_and_nothing_is_held(make_docker_yard, registry):
    """R34: while it is pulled the job waits, says how far that is, and another has its place."""
    yard = make_docker_yard(max_concurrent=1)
    ref = pulling(yard, registry)
    job = yard.job(ref)
    assert (job["status"], job["stage"]) == ("pending", "pull")
    assert job["reason"]["code"] == "pulling_image"
    said = yard.cli("show", ref).stdout
    assert f"pulling {registry.address}/trainer:2: " in said
    assert yard.attempts(ref) == []
    yard.wait(yard.submit(["true"]), "completed")
    registry.hold.clear()
    yard.wait(ref, "completed", seconds=60)
    assert yard.logs(ref) == ["ran"]


def test_a_pull_is_cancelled(yard, registry, docker_engine):
    """R34, R41: nobody pulls any more, nothing ran, and what was begun is not taken for whole."""
    ref = pulling(yard, registry)
    image = yard.job(ref)["image"]
    assert pullers(image)
    given_up = docker_engine.said().count("context canceled")
    answer = yard.cancel(ref)
    assert (answer.body["status"], answer.body["receipt"]["stage"]) == ("cancelled", "pull")
    assert pullers(image) == []
    assert yard.attempts(ref) == []
    until(
        lambda: docker_engine.said().count("context canceled") > given_up, 60, docker_engine.said
    )
    registry.hold.clear()
    assert docker_engine.docker("images", "--quiet", f"{registry.address}/trainer").stdout == ""


def test_jobs_of_one_image_pull_it_once(yard, registry):
    """R34: together, and the cancel of one does not end what the others wait for."""
    first = pulling(yard, registry)
    image = yard.job(first)["image"]
    others = [yard.submit("echo ran", image=image, **SHARE) for _ in range(2)]
    for ref in others:
        until(lambda ref=ref: is_half_done(yard, ref), 60, lambda ref=ref: yard.job(ref))
    assert len(pullers(image)) == 3
    assert yard.cancel(first).body["status"] == "cancelled"
    registry.hold.clear()
    for ref in others:
        yard.wait(ref, "completed", seconds=60)
    assert layers(registry) == 1


def test_the_server_is_killed_during_a_pull(yard, registry):
    """R42: the pull goes on, and the next server goes on with the job."""
    ref = pulling(yard, registry)
    image = yard.job(ref)["image"]
    yard.kill9()
    assert pullers(image)
    yard.start()
    until(lambda: yard.job(ref)["reason"]["code"] == "pulling_image", words=lambda: yard.job(ref))
    registry.hold.clear()
    yard.wait(ref, "completed", seconds=60)
    assert layers(registry) == 1


def test_an_image_that_went_away_meanwhile_is_pulled_at_the_start(yard, registry, docker_engine):
    """R34: a job never runs outside its image, and never fails for want of a pull."""
    image = f"{registry.address}/trainer:4"
    yard.api("POST", "/system/stop-queue")
    ref = yard.submit("echo ran", image=image, **SHARE)
    listed = ("images", "--quiet", image)
    until(lambda: docker_engine.docker(*listed).stdout, 60, lambda: yard.job(ref))
    until(lambda: yard.job(ref)["reason"]["code"] == "dispatch_paused", 60, lambda: yard.job(ref))
    docker_engine.docker("rmi", "--force", image)
    yard.api("POST", "/system/start-queue")
    yard.wait(ref, "completed", seconds=60)
    assert yard.logs(ref) == ["ran"]
    assert layers(registry) == 2


def test_a_registry_that_does_not_answer_is_asked_again_later(make_docker_yard, registry):
    """The job waits meanwhile, says why, and can be cancelled."""
    yard = make_docker_yard(RUNYARD_RETRY_DELAYS="600")
    registry.close()
    ref = yard.submit("true", image=f"{registry.address}/trainer:5", **SHARE)
    job = until(lambda: "until" in (now := yard.job(ref))["reason"]["params"] and now, 60)
    assert job["reason"]["code"] == "pulling_image"
    assert job["reason"]["params"]["last"]["code"] == "network"
    assert "could not be reached" in yard.cli("show", ref).stdout
    assert yard.cancel(ref).body["status"] == "cancelled"


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
