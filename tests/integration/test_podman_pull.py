"""Images that podman has not got yet, pulled from a registry of this test."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from image_jobs import SHARE, settings_for
from image_registry import ImageRegistry, padded
from podman_engine import PodmanEngine
from yards import until

pytestmark = pytest.mark.root

_PADDING = 8 * 1024 * 1024


class PullingPodman(PodmanEngine):
    """Which is told that a registry on loopback has no certificate; Docker takes that for so."""

    registry = ""

    def _command(self, driver: str) -> list[str]:
        told = self.folder / "registries.conf"
        words = f'[[registry]]\nlocation = "{self.registry}"\ninsecure = true\n'
        told.write_text(words if self.registry else "")
        return ["env", f"CONTAINERS_REGISTRIES_CONF={told}", *super()._command(driver)]


@pytest.fixture
def engine():
    for program in ("podman", "conmon", "runc", "docker"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = Path(tempfile.mkdtemp(prefix="runyard-podman-"))
    made = PullingPodman(folder, shutil.which("docker-init") or "")
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def registry(engine):
    made = ImageRegistry(padded(engine.archive, os.urandom(_PADDING)))
    engine.registry = made.address
    engine.kill9()
    engine.start_again()  # which reads it
    yield made
    made.close()


@pytest.fixture
def yard(make_yard, engine):
    yield make_yard(env=settings_for(engine)).start()
    assert engine.containers() == []


def layers(registry):
    return sum(path.endswith(registry.layer) for path in registry.asked)


def test_podman_pulls_before_anything_is_held_and_once(registry, yard):
    """R34: podman itself would fetch it for each; one that waits goes on when the first leaves."""
    registry.hold.set()
    image = f"{registry.address}/trainer:1"
    first = yard.submit("echo ran", image=image, **SHARE)
    until(lambda: layers(registry) == 1, 60, lambda: (yard.job(first), registry.asked))
    until(
        lambda: yard.job(first)["reason"]["code"] == "pulling_image",
        words=lambda: yard.job(first),
    )
    assert yard.status(first) == "pending"
    others = [yard.submit("echo ran", image=image, **SHARE) for _ in range(2)]
    for ref in others:
        until(lambda ref=ref: yard.job(ref)["stage"] == "pull", 60, lambda ref=ref: yard.job(ref))
    registry.hold.clear()
    for ref in (first, *others):
        yard.wait(ref, "completed", seconds=60)
        assert yard.logs(ref) == ["ran"]
    assert layers(registry) == 1


def test_the_pull_of_podman_is_cancelled(registry, yard):
    """R34, R41: the next who waits begins anew."""
    registry.hold.set()
    image = f"{registry.address}/trainer:2"
    first = yard.submit("echo ran", image=image, **SHARE)
    until(lambda: layers(registry) == 1, 60, lambda: (yard.job(first), registry.asked))
    second = yard.submit("echo ran", image=image, **SHARE)
    until(lambda: yard.job(second)["stage"] == "pull", 60, lambda: yard.job(second))
    answer = yard.cancel(first)
    assert (answer.body["status"], answer.body["receipt"]["stage"]) == ("cancelled", "pull")
    until(lambda: layers(registry) == 2, 60, lambda: (yard.job(second), registry.asked))
    registry.hold.clear()
    yard.wait(second, "completed", seconds=60)


def test_an_image_that_podman_finds_nowhere(registry, yard):
    image = f"{registry.address}/missing:1"
    job = yard.wait(yard.submit("true", image=image, **SHARE), "failed", seconds=60)
    assert job["reason"]["code"] == "start_failed"
    assert job["reason"]["params"]["path"] == image
    assert "manifest unknown" in job["reason"]["params"]["message"]
