"""Images are brought while their jobs wait: nothing is held meanwhile, and that is told."""

from __future__ import annotations

import json

import pytest

from engine_yard import ANN
from runyard.executors.base import ExecutorUnavailable
from runyard.wire.jobs import read_job
from scripted_executor import ScriptedExecutor
from yards import until

IMAGE = "registry.example.org/trainer:1"


class ScriptedImages:
    def __init__(self) -> None:
        self.here: set[str] = set()
        self.asked: list[str] = []
        self.away = False

    def is_here(self, image: str) -> bool:
        if self.away:
            raise ExecutorUnavailable("no_engine")
        self.asked.append(image)
        return image in self.here

    def pull(self, image: str, progress_file: str) -> tuple[str, ...]:
        return ("pull", image, progress_file)


class ScriptedDocker(ScriptedExecutor):
    name = "docker"
    why = ""

    def available(self) -> tuple[bool, str]:
        return not self.why, self.why


@pytest.fixture
def images():
    return ScriptedImages()


@pytest.fixture
def docker(tmp_path):
    return ScriptedDocker(tmp_path / "containers")


@pytest.fixture
def yard(make_engine, images, docker):
    return make_engine(others=[docker], images=images, max_concurrent=1)


def pull_of(yard, ref, number=1):
    """Until it was handed over."""
    name = f"{ref}.p{number}"
    until(lambda: name in yard.executor.launches, 20, lambda: yard.reason(ref))
    return name


def tell(yard, name, **told):
    path = yard.executor.launches[name].argv[2]
    yard.settings.data_dir.joinpath("attempts", name).mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        json.dump({"image": IMAGE, **told}, file)


def test_nothing_is_held_while_it_is_pulled(yard, images, docker):
    """R34: another job has the only place meanwhile; how far it is is told."""
    ref = yard.submit(image=IMAGE)
    name = pull_of(yard, ref)
    assert yard.executor.launches[name].argv[:2] == ("pull", IMAGE)
    tell(yard, name, bytes_done=3, bytes_total=9, layers_done=0, layers_total=1)
    code, params = yard.reason(ref)
    assert code == "pulling_image"
    assert (params["image"], params["bytes_done"], params["bytes_total"]) == (IMAGE, 3, 9)
    assert (yard.status(ref), yard.job(ref).stage.value) == ("pending", "pull")
    other = yard.running()
    images.here.add(IMAGE)
    yard.executor.finish(name)
    yard.wait_reason(ref, "max_concurrent")
    yard.finish(other)
    yard.wait(ref, "running")
    assert list(docker.launches) == [f"{ref}.1"]


def test_what_is_here_is_not_pulled(yard, images, docker):
    images.here.add(IMAGE)
    ref = yard.submit(image=IMAGE)
    yard.wait(ref, "running")
    assert list(yard.executor.launches) == []
    assert "preparation_started" not in yard.events(ref)
    docker.finish(f"{ref}.1")
    yard.wait(ref, "completed")


def test_many_jobs_of_one_image_are_let_through_in_parts(yard, images):
    images.here.add(IMAGE)
    refs = [job.ref for job in yard.submit_all([{"command": "true", "image": IMAGE}] * 250)]

    def waiting() -> list[str]:
        return [ref for ref in refs if yard.reason(ref)[0] == "preparing"]

    until(lambda: not waiting(), 60, lambda: len(waiting()), every=0.2)
    assert set(images.asked) == {IMAGE}


def test_a_cancel_ends_the_pull(yard):
    """R41: the job is cancelled when nobody pulls for it any more."""
    yard.executor.stubborn = True
    ref = yard.submit(image=IMAGE)
    name = pull_of(yard, ref)
    assert yard.yard.cancel(ref, ANN).status.value == "cancelling"
    assert yard.reason(ref)[0] == "waiting_for_preparation"
    yard.executor.finish(name, None, signal=15, cause="cancelled")
    yard.wait(ref, "cancelled")
    assert yard.yard.receipt(ref)["stage"] == "pull"


def test_what_cannot_be_pulled_fails_the_job(yard):
    ref = yard.submit(image=IMAGE, max_retries=3)
    name = pull_of(yard, ref)
    tell(yard, name, error="manifest unknown", code="not_found")
    yard.executor.finish(name, 1)
    reason = yard.wait(ref, "failed").reason
    assert reason.code == "start_failed"
    assert reason.params == {"step": "pull", "path": IMAGE, "message": "manifest unknown"}
    assert yard.attempts(ref) == []


def test_trouble_that_may_pass_is_tried_again(yard, images):
    ref = yard.submit(image=IMAGE, retry_delays=[50])
    name = pull_of(yard, ref)
    tell(yard, name, error="connection refused", code="network")
    yard.executor.finish(name, 1)
    until(lambda: "until" in yard.reason(ref)[1])
    code, params = yard.reason(ref)
    assert (code, params["last"]["code"]) == ("pulling_image", "network")
    images.here.add(IMAGE)  # somebody pulled it by hand
    yard.clock.ahead += 60
    yard.yard.runtime.prepare()
    yard.wait(ref, "running")


def test_an_engine_that_is_away_is_told(yard, docker, images):
    docker.why, images.away = "no_engine: /var/run/docker.sock", True
    yard.yard.runtime._look_at_executors()
    ref = yard.submit(image=IMAGE)
    told = {"executor": "docker", "why": "no_engine", "at": "/var/run/docker.sock"}
    assert yard.reason(ref) == ("executor_unavailable", told)
    assert yard.yard.cancel(yard.submit(image=IMAGE), ANN).status.value == "cancelled"
    docker.why, images.away = "", False
    images.here.add(IMAGE)
    yard.yard.runtime._look_at_executors()
    yard.yard.runtime.prepare()
    yard.wait(ref, "running")


def test_what_is_pulled_and_fetched_waits_for_both(yard, images):
    ref = yard.submit(image=IMAGE, prefetch=["http://127.0.0.1:9/model.bin"])
    pulled = pull_of(yard, ref)
    images.here.add(IMAGE)
    yard.executor.finish(pulled)
    fetched = pull_of(yard, ref, 2)
    assert yard.job(ref).stage.value == "prefetch"
    yard.executor.finish(fetched)
    yard.wait(ref, "running")


def test_a_restarted_server_goes_on_with_the_pull(yard, images):
    """R42"""
    ended, living = yard.submit(image=IMAGE), yard.submit(image="other:1")
    first, second = pull_of(yard, ended), pull_of(yard, living)
    yard.close()
    images.here.add(IMAGE)
    yard.executor.finish(first)
    yard.restart()
    yard.wait(ended, "running")
    assert yard.reason(living)[0] == "pulling_image"
    assert second in yard.executor.launches
    yard.yard.cancel(living, ANN)
    yard.wait(living, "cancelled")


def test_what_can_never_fit_says_so_at_once(yard):
    ref = yard.submit(image=IMAGE, cpu_cores=4000)
    assert yard.wait_reason(ref, "never_fits")["resource"] == "cpu"
    assert list(yard.executor.launches) == []


def test_no_pull_where_it_is_forbidden(make_engine, images, docker):
    yard = make_engine(others=[docker], images=images, docker_pull="never")
    ref = yard.submit(image=IMAGE)
    yard.wait(ref, "running")
    assert images.asked == []


def test_a_preview_says_what_it_would_wait_for(yard, images, docker):
    asked = read_job({"command": "true", "gpu_count": 0, "image": IMAGE}).to_submission()
    assert yard.yard.pages.previews.of(asked, ANN).reason.code == "pulling_image"
    docker.why = "no_engine: /nowhere"
    yard.yard.runtime._look_at_executors()
    assert yard.yard.pages.previews.of(asked, ANN).reason.code == "executor_unavailable"
    docker.why = ""
    images.here.add(IMAGE)
    yard.yard.runtime._look_at_executors()
    assert yard.yard.pages.previews.of(asked, ANN).placed is not None
