"""Clusters a server does not work with, and what it says about them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ray_cluster import RayCluster, has_ray
from runyard.executors import ray_spec
from runyard.ray_bridge import joining, refusals
from yards import RunningYard, until


def why(yard, ref):
    found = yard.job(ref)["wait"] or {}
    return found.get("params", {}) if found.get("code") == "executor_unavailable" else {}


@pytest.fixture
def serve(tmp_path):
    if not has_ray():
        pytest.skip("Ray is not installed")
    made = []

    def start(address, *flags, **env):
        flags = ("--executor", "ray", "--ray-address", address, *flags)
        made.append(RunningYard(tmp_path / f"yard{len(made)}", *flags, env=env))
        return made[-1].start()

    yield start
    for yard in made:
        yard.stop()


def test_nobody_there(serve):
    """R55: a job waits and says that the cluster cannot be reached."""
    yard = serve("127.0.0.1:1")
    ref = yard.submit("true")
    until(lambda: why(yard, ref).get("why") == "ray_unreachable", 120, lambda: yard.job(ref))
    said = yard.cli("show", ref).stdout
    assert "Ray" in said, said


def test_a_wrong_token_is_told(serve, ray_cluster, tmp_path):
    token = tmp_path / "token"
    token.write_text("f" * 64)
    yard = serve(ray_cluster.address, RAY_AUTH_TOKEN_PATH=str(token))
    ref = yard.submit("true")
    until(lambda: why(yard, ref).get("why") == "ray_token_refused", 120, lambda: yard.job(ref))


def test_unauthenticated_ray_refused(serve):
    """A cluster that lets everybody in is not joined, unless somebody says so."""
    cluster = RayCluster(first=31, token=False)
    try:
        cluster.start(nodes=1)
        yard = serve(cluster.address)
        ref = yard.submit("true")
        until(lambda: why(yard, ref).get("why") == "ray_insecure", 120, lambda: yard.job(ref))
        yard.stop()
        allowed = serve(cluster.address, RUNYARD_ALLOW_INSECURE_RAY="true")
        ref = allowed.submit("echo in")
        allowed.wait(ref, "completed", seconds=90)
        assert allowed.logs(ref) == ["in"]
        allowed.stop()
    finally:
        cluster.stop()


def test_version_mismatch_message(tmp_path, monkeypatch):
    """Both sides are named: who reads it knows what to install where."""
    told = {
        "ray": "2.60.0",
        "python": "3.11.7",
        "address": "10.0.0.1:6379",
        "cluster": {"ray_version": "2.59.0", "python_version": "3.12.1"},
    }
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(told)}\nE\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(refusals.Refused) as refused:
        joining._checked("10.0.0.1:6379", allow_insecure=True)
    assert refused.value.code == "ray_version_mismatch"
    words = ray_spec.why(refused.value.code, refused.value.params)
    for version in ("2.60.0", "3.11.7", "2.59.0", "3.12.1"):
        assert version in words


def test_an_old_ray_is_refused(tmp_path, monkeypatch):
    told = {"ray": "2.53.1", "python": "3.11.7", "address": "10.0.0.1:6379", "cluster": {}}
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(told)}\nE\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(refusals.Refused) as refused:
        joining._checked("10.0.0.1:6379", allow_insecure=True)
    assert refused.value.code == "ray_too_old"


def test_a_cluster_that_does_not_say_whom_it_lets_in(tmp_path, monkeypatch):
    """One that is too slow to answer somebody without a token may let everybody in."""
    known = {"ray": "2.60.0", "python": "3.11.7", "address": "10.0.0.1:6379"}
    answers = {
        "disabled": {**known, "error": "failed", "message": "it took too long"},
        "token": {**known, "cluster": {}},
    }
    for mode, told in answers.items():
        (tmp_path / mode).write_text(json.dumps(told) + "\n")
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/$RAY_AUTH_MODE"\n')
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(refusals.Refused) as refused:
        joining._checked("10.0.0.1:6379", allow_insecure=False)
    assert (refused.value.code, refused.value.params["why"]) == ("ray_failed", "it took too long")


def test_an_interpreter_without_ray_is_told(serve, tmp_path):
    """The bridge runs with an interpreter of its own, which may lack Ray."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    yard = serve("127.0.0.1:1", RUNYARD_RAY_PYTHON=str(bare / "bin" / "python"))
    ref = yard.submit("true")

    def told():
        found = why(yard, ref)
        return found if found.get("why") == "ray_not_installed" else None

    assert "bare" in until(told, 120, lambda: yard.job(ref))["at"]


def test_the_server_never_imports_ray(ray_yard):
    """Losing a cluster ends the process that Ray lives in."""
    ref = ray_yard.submit("true")
    ray_yard.wait(ref, "completed", seconds=60)
    maps = Path(f"/proc/{ray_yard.process.pid}/maps").read_text()
    assert "_raylet" not in maps
