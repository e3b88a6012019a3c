"""Starts that are asked for twice, and clients that go away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ray_cluster import marked
from ray_yard import RayPlace
from runyard.testing.executor_place import Serving
from yards import TERMINAL, until


@pytest.fixture
def serving(tmp_path, ray_cluster):
    made = Serving(RayPlace(tmp_path, ray_cluster))
    yield made
    made.close()


def test_duplicate_start_is_idempotent(serving):
    """The same attempt again, by the same server and by one that came after it: one tree."""
    launch = serving.place.launch(1, "echo begun; exec sleep 600")
    name = serving.start(launch)
    serving.executor.start(launch)
    serving.said(name, "begun")
    pids = marked(name)
    serving.shut_down()
    serving.start_again()
    serving.executor.start(launch)
    serving.stop(name, 5.0)
    serving.end(name)
    assert serving.log(name) == "begun\n"
    assert len(pids) == 1
    assert len(serving.place.cluster.groups()) == 0


def test_a_server_takes_over_what_another_began(tmp_path, ray_cluster, serving):
    """R56: with nothing but the name of an attempt, another server of the same database finds it
    in the cluster, has its whole log, and ends it."""
    launch = serving.place.launch(1, "echo begun; sleep 600")
    name = serving.start(launch)
    serving.said(name, "begun")
    serving.shut_down()
    place = RayPlace(tmp_path / "other", ray_cluster)
    place.owner = serving.place.owner
    other = Serving(place)
    try:
        until(lambda: other.look(name).sight == "running", 60, lambda: other.look(name))
        other.said(name, "begun")
        other.stop(name, 5.0)
        end = other.end(name)
        assert end.cause == "cancelled"
        assert not marked(name)
    finally:
        other.close()
    serving.start_again()


def test_sigint_client_cancels_job(ray_yard):
    """R51: Ctrl-C in the terminal of `runyard run` ends the job on its node."""
    env = ray_yard.env | {"RUNYARD_URL": ray_yard.url, "RUNYARD_API_KEY": ray_yard.key}
    shape = ["--cpus", "0.1", "--mem", "0.1GB", "--gpus", "1"]
    argv = [sys.executable, "-m", "runyard", "run", *shape, "--", "sh", "-c"]
    client = subprocess.Popen(
        [*argv, "echo up; exec sleep 600"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ray_yard.folder,
    )
    try:
        assert client.stdout is not None
        assert client.stdout.readline() == b"up\n"
        [row] = [one for one in ray_yard.ask("/jobs") if one["status"] not in TERMINAL]
        os.kill(client.pid, signal.SIGINT)
        assert client.wait(90) == 130
        assert ray_yard.status(row["job_id"]) == "cancelled"
        assert not marked(f"{row['job_id']}.1")
    finally:
        if client.poll() is None:
            client.kill()
        client.communicate()
