"""Ports of jobs in containers: reachable on this machine's loopback, and from nowhere else."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import urllib.request

import pytest

from docker_engine import IMAGE, DockerEngine, python_places, running_engine
from image_jobs import SHARE, settings_for
from yards import SMALL, until

pytestmark = pytest.mark.root

NAMED = "runyard-named"
# A range that nobody routes; the third number is this process's own.
_NUMBER = os.getpid() % 250
SERVE = f'echo served >it; exec {sys.executable} -m http.server --bind "$1" "$RUNYARD_PORT_WEB"'


class BridgedEngine(DockerEngine):
    """With a bridge of its own instead of the machine's, and a proxy that publishes ports: no
    rule of the machine's firewall is touched."""

    bridge = f"ry{os.getpid()}"
    address = f"198.18.{_NUMBER}.1"
    network_options = (f"--bridge={bridge}", "--userland-proxy=true")

    def start(self) -> None:
        _ip("link", "add", self.bridge, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")
        super().start()
        self.docker("network", "create", "--subnet", f"198.19.{_NUMBER}.0/24", NAMED)

    def stop(self) -> None:
        self.docker("network", "rm", NAMED, check=False)
        super().stop()
        subprocess.run(["ip", "link", "delete", self.bridge], check=False, capture_output=True)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


@pytest.fixture(scope="module")
def engine():
    for program in ("ip", "docker-proxy"):
        if shutil.which(program, path=f"/usr/sbin:{os.environ['PATH']}") is None:
            pytest.skip(f"{program} is not installed")
    with running_engine(BridgedEngine) as made:
        yield made


@pytest.fixture
def make_docker_yard(make_yard, engine):
    def make(network):
        env = settings_for(engine, *python_places(), network=network)
        return make_yard(env=env).start()

    yield make
    assert engine.containers() == []


def serving(yard, bound):
    """A job that serves its workspace at its port; (job, port)."""
    argv = ["/bin/sh", "-c", SERVE, "sh", bound]
    ref = yard.submit(argv, image=IMAGE, ports=["web"], grace_s=1, **SHARE)
    yard.wait(ref, "running", seconds=60)
    [port] = yard.attempts(ref)[0]["ports"]
    until(lambda: fetched(port) == "served\n", 60, lambda: (yard.job(ref), yard.logs(ref)))
    return ref, port


def fetched(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/it", timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return None


def listens(address, port):
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((address, port)) == 0


@pytest.mark.parametrize("network", ["bridge", NAMED])
def test_a_port_of_a_bridged_container_is_published_on_loopback_only(
    make_docker_yard, engine, network
):
    """R34: at its granted number; the rest of the machine's addresses know nothing of it."""
    yard = make_docker_yard(network)
    ref, port = serving(yard, "0.0.0.0")
    [container] = engine.containers()
    seen = engine.inspect(container)
    assert seen["HostConfig"]["NetworkMode"] == network
    published = [{"HostIp": "127.0.0.1", "HostPort": str(port)}]
    assert seen["HostConfig"]["PortBindings"] == {f"{port}/tcp": published}
    assert seen["NetworkSettings"]["Ports"] == {f"{port}/tcp": published}
    assert not listens(engine.address, port)
    answer = yard.cancel(ref)
    assert answer.body["status"] == "cancelled"
    assert answer.body["receipt"]["ports"] == [port]
    assert not listens("127.0.0.1", port)


def test_two_bridged_jobs_have_ports_of_their_own(make_docker_yard):
    """R34: each is reached at its own, and one's end leaves the other's alone."""
    yard = make_docker_yard("bridge")
    (first, one), (second, other) = serving(yard, "0.0.0.0"), serving(yard, "0.0.0.0")
    assert one != other
    assert yard.cancel(first).body["status"] == "cancelled"
    until(lambda: fetched(other) == "served\n", words=lambda: yard.job(second))
    assert not listens("127.0.0.1", one)
    yard.cancel(second)


def test_a_port_of_the_hosts_network_is_the_machines(make_docker_yard, engine):
    """R34: nothing is published; the job binds where it likes."""
    yard = make_docker_yard("host")
    ref, port = serving(yard, "127.0.0.1")
    [container] = engine.containers()
    assert engine.inspect(container)["HostConfig"]["PortBindings"] in (None, {})
    assert not listens(engine.address, port)
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert not listens("127.0.0.1", port)


def test_services_in_a_network_of_their_own_are_refused_at_once(make_docker_yard):
    """R15, R34: when the job is submitted, not after its wait; nothing is queued."""
    yard = make_docker_yard("bridge")
    service = {"name": "board", "command": "sleep 600", "port": "auto"}
    body = {**SMALL, **SHARE, "command": "true", "image": IMAGE, "services": [service]}
    answer = yard.api("POST", "/jobs", body)
    assert answer.status == 422
    [field] = answer.body["params"]["fields"]
    assert (field["field"], field["code"]) == ("services", "services_need_host_network")
    assert yard.ask("/jobs") == []
    said = yard.cli("run", "--image", IMAGE, "--service", "board=sleep 600", "--", "true")
    assert said.returncode != 0
    assert "docker_network = bridge" in said.stderr


def test_a_job_and_its_services_meet_on_the_machines_loopback(make_docker_yard):
    """R15, R34: with the host's network: waited for until it answers, reached by its URL, and
    gone with the job."""
    yard = make_docker_yard("host")
    serve = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
    service = {"name": "files", "command": serve, "health": "/"}
    fetch = "import os, urllib.request as r; r.urlopen(os.environ['RUNYARD_SERVICE_FILES_URL'])"
    ref = yard.submit(
        [sys.executable, "-c", f"{fetch}; print('met')"],
        image=IMAGE,
        services=[service],
        **SHARE,
    )
    yard.wait(ref, "completed", seconds=120)
    assert yard.logs(ref) == ["met"]
    [port] = yard.attempts(ref)[0]["ports"]
    assert not listens("127.0.0.1", port)
