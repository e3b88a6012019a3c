"""deploy/Dockerfile, built by a real engine on a small Debian of this machine, and run.

No registry and no network: what pip installs is brought from outside, by the same locks.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

import debian_root
from docker_engine import CHECKOUT
from yards import until

pytestmark = [pytest.mark.slow, pytest.mark.root]

BASE, IMAGE = "runyard-test/python:3.11", "runyard-test/runyard:1"
LOCKS = ("requirements.lock", "requirements-build.lock")
# A busy machine must not keep jobs waiting; what fails is not tried again.
SETTINGS = [
    word
    for name in ("GATE_CPU=100", "GATE_MEMORY=100", "GATE_DISK=100", "MAX_RETRIES=0")
    for word in ("--env", f"RUNYARD_{name}")
]
_BUILD_S = 400


@pytest.fixture(scope="module")
def image(docker_engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipe")
    wheels = folder / "wheels"
    for lock in LOCKS:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"]
        subprocess.run(
            [*pip, "--require-hashes", "--requirement", CHECKOUT / lock, "--dest", wheels],
            check=True,
            timeout=_BUILD_S,
        )
    settings = folder / "pip.conf"
    settings.write_text("[global]\nno-index = true\nfind-links = /srv/wheels\n")
    archive = folder / "root.tar"
    try:
        debian_root.write_archive(
            archive, more=[(wheels, "srv/wheels"), (settings, "etc/pip.conf")]
        )
    except debian_root.NoDebian as missing:
        pytest.skip(str(missing))
    docker_engine.docker("import", archive, BASE, timeout=_BUILD_S)
    recipe = ("--file", CHECKOUT / "deploy/Dockerfile", "--tag", IMAGE, CHECKOUT)
    docker_engine.docker(
        *("build", "--network", "none", "--build-arg", f"BASE={BASE}", *recipe), timeout=_BUILD_S
    )
    assert docker_engine.inspect(IMAGE)["Config"]["User"] == "runyard"
    yield IMAGE
    docker_engine.docker("rmi", "--force", IMAGE, BASE, check=False)


@pytest.fixture
def volume(docker_engine):
    docker_engine.docker("volume", "create", "runyard-data")
    yield "runyard-data"
    docker_engine.docker("volume", "rm", "--force", "runyard-data")


@contextlib.contextmanager
def served(engine, image, volume, *command):
    """A container as the guide starts it, without a network of its own to publish a port in."""
    name = engine.docker(
        *("run", "--detach", "--network", "none", "--volume", f"{volume}:/data"),
        *("--shm-size", "64m", "--stop-timeout", "60", *SETTINGS, image, *command),
    ).stdout.strip()
    try:
        yield Served(engine, name)
    finally:
        engine.docker("rm", "--force", "--volumes", name)


class Served:
    def __init__(self, engine, name) -> None:
        self._engine, self._name = engine, name

    def run(self, *words, check=True):
        return self._engine.docker("exec", self._name, *words, check=check, timeout=120)

    def is_healthy(self) -> bool:
        """By the image's own check."""
        seen = self._engine.inspect(self._name)["Config"]["Healthcheck"]["Test"]
        return self.run(*seen[1:], check=False).returncode == 0

    def ready(self) -> Served:
        until(self.is_healthy, 90, lambda: self._engine.docker("logs", self._name).stderr)
        return self

    def stop(self) -> int:
        self._engine.docker("stop", self._name, timeout=120)
        return int(self._engine.inspect(self._name)["State"]["ExitCode"])


@pytest.mark.timeout(900)
def test_the_image_is_built_and_runs_jobs(docker_engine, image, volume):
    """R34, R50: first a key, then the server of the recipe; a job, its log, what is kept."""
    with served(docker_engine, image, volume, "server") as first:
        first.ready()
        key = first.run("runyard", "keys", "create", "alice", "--role", "admin").stdout
        assert key.strip()
        assert first.stop() == 0
    with served(docker_engine, image, volume) as server:
        server.ready()
        assert server.run("id", "-u").stdout.strip() == "1000"
        process = server.run("cat", "/proc/1/cmdline").stdout.split("\0")
        assert "/opt/runyard/bin/runyard" in process
        assert "keep" in process
        ran = server.run(
            "runyard", "run", "--", "sh", "-c", "echo from the image; exit 3", check=False
        )
        assert (ran.returncode, "from the image" in ran.stdout) == (3, True)
        server.run("runyard", "run", "--", "python", "-c", "import runyard; print('found it')")
        last = json.loads(server.run("runyard", "ls", "--json").stdout)[0]
        page = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8765/').status)"
        assert server.run("python", "-c", page).stdout.strip() == "200"
        assert server.stop() == 0
    with served(docker_engine, image, volume) as again:
        again.ready()
        logs = again.run("runyard", "logs", last["job_id"]).stdout
        assert "found it" in logs
        assert again.stop() == 0


@pytest.fixture(scope="module")
def compose(tmp_path_factory):
    """Debian's docker-compose, unpacked and not installed; the command and its environment."""
    if shutil.which("docker-compose"):
        return ["docker-compose"], dict(os.environ)
    if shutil.which("apt-get") is None:
        pytest.skip("docker-compose is not installed, and this is no Debian")
    folder = tmp_path_factory.mktemp("compose")
    folder.chmod(0o755)
    wanted = ["install", "--simulate", "--no-install-recommends", "docker-compose"]
    told = _said("apt-get", *wanted, cwd=folder)
    packages = [line.split()[1] for line in told.splitlines() if line.startswith("Inst ")]
    _said("apt-get", "download", *packages, cwd=folder)
    for package in folder.glob("*.deb"):
        _said("dpkg", "--extract", package, folder / "root", cwd=folder)
    modules = folder / "root/usr/lib/python3/dist-packages"
    env = {"PATH": os.defpath, "HOME": str(folder), "PYTHONPATH": str(modules)}
    return ["/usr/bin/python3", str(folder / "root/usr/bin/docker-compose")], env


def _said(*command, **options):
    words = [*map(str, command)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=200, check=False, **options
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.timeout(300)
def test_compose_understands_the_compose_file(compose):
    """As docker-compose reads it: the recipe, loopback only, time for jobs to save themselves."""
    command, env = compose
    file = CHECKOUT / "deploy/compose.yaml"
    told = yaml.safe_load(_said(*command, "--file", file, "config", env=env))
    service = told["services"]["runyard"]
    assert service["build"] == {"context": str(CHECKOUT), "dockerfile": "deploy/Dockerfile"}
    assert service["ports"] == ["127.0.0.1:8765:8765/tcp"]
    assert service["volumes"] == ["runyard-data:/data:rw"]
    assert service["stop_grace_period"] in ("60s", "1m0s")
