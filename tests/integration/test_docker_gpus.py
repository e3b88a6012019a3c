"""GPUs of jobs with an image: what a real engine is asked for, with a runtime for them or not.

The machine and its GPUs are scripted, engine and executors are real. An engine takes the program
of NVIDIA's toolkit for its runtime; a program of that name shows what it would be told.
"""

from __future__ import annotations

import json
import os

import pytest

from docker_engine import IMAGE, host_places, running_engine
from engine_yard import ANN, EngineYard
from runyard.cli import wording
from runyard.executors.docker import DockerExecutor
from runyard.executors.docker_plan import DockerOptions
from runyard.executors.local import LocalExecutor
from runyard.probes.base import GpuProcess
from runyard.supervisor import process_table
from runyard.supervisor.engine_http import Engine
from scripted_machine import ScriptedMachine
from yards import keepers_of, until

pytestmark = pytest.mark.root

HOOK = "nvidia-container-runtime-hook"


@pytest.fixture
def make_gpu_yard(tmp_path):
    made = []

    def make(engine, gpu_count=3):
        data = tmp_path / "data"
        for name in ("attempts", "locks"):
            (data / name).mkdir(parents=True)
        local = LocalExecutor(data, "node-1", data / "locks")
        options = DockerOptions(
            sockets=(engine.socket_path,),
            network="none",
            mounts=tuple(f"{place}:ro" for place in host_places()),
        )
        docker = DockerExecutor(local, data, "node-1", options)
        machine = ScriptedMachine(gpu_count)
        machine.tag_of = process_table.tag
        yard = EngineYard(
            data, executor=local, machine=machine, others=[docker], images=docker.images
        )
        made.append((yard, data))
        return yard.open()

    yield make
    for yard, data in made:
        yard.yard.close(keep=False)
        yard.store.close()
        until(lambda data=data: not keepers_of(data), 30, "the keeper leaves")


@pytest.fixture
def engine_with_gpus(tmp_path, monkeypatch):
    folder = tmp_path / "toolkit"
    folder.mkdir()
    hook = folder / HOOK
    hook.write_text(f"#!/bin/sh\nexec cat >>{folder}/told\n")
    hook.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with running_engine() as engine:
        yield engine


def ended(yard, ref):
    return yard.wait(ref, "completed", "failed")


def log_of(yard, ref):
    return (yard.settings.data_dir / "attempts" / f"{ref}.1" / "out.log").read_text().split()


def is_up(yard, ref):
    """Until it said so; the processes of its container."""
    yard.wait(ref, "running")
    until(lambda: "up" in log_of(yard, ref), 60)
    folder = yard.settings.data_dir / "attempts" / f"{ref}.1"
    started = json.loads((folder / "container-started.json").read_text())
    return [started["pid"], *process_table.descendants(started["pid"])]


def on_gpu(*pids):
    return [GpuProcess(pid, 900) for pid in pids]


def test_two_shares_of_a_gpu_are_used_at_once(make_gpu_yard, engine_with_gpus):
    """R13, R34: what a container has on its GPU is the job's own, and keeps no other share of it
    from being given; a stranger's process does."""
    yard = make_gpu_yard(engine_with_gpus, gpu_count=1)
    script = "echo up; sleep 600"
    share = {"image": IMAGE, "gpu_count": 0.4, "grace_s": 0}
    first = yard.submit(script, **share)
    *_, job = is_up(yard, first)
    yard.machine.on_gpu["GPU-0"] = on_gpu(job)
    yard.parts.machine.refresh()
    second = yard.submit(script, **share)
    *_, other = is_up(yard, second)
    assert yard.status(first) == yard.status(second) == "running"
    yard.machine.on_gpu["GPU-0"] = on_gpu(job, other, os.getpid())
    yard.parts.machine.refresh()
    assert [one.pid for one in yard.parts.machine.capacity.gpus[0].holders] == [os.getpid()]
    for ref in (first, second):
        yard.yard.cancel(ref, ANN)
    yard.machine.on_gpu.clear()
    for ref in (first, second):
        yard.wait(ref, "cancelled")


def test_an_engine_without_gpus_is_named(make_gpu_yard, docker_engine):
    """R34: the engine keeps exactly the granted GPUs of the request, and cannot give them; the
    job ends at once, is not tried again, and says what to do."""
    yard = make_gpu_yard(docker_engine)
    ref = yard.submit("echo ran", image=IMAGE, gpu_count=2, max_retries=3)
    reason = ended(yard, ref).reason
    assert yard.status(ref) == "failed"
    assert reason.code == "gpu_runtime_missing"
    assert (reason.params["path"], "device driver" in reason.params["message"]) == (IMAGE, True)
    said = wording.reason({"code": reason.code, "params": reason.params})
    assert "nvidia-ctk runtime configure" in said
    [attempt] = yard.attempts(ref)
    assert docker_engine.containers() == []
    folder = yard.settings.data_dir / "attempts" / f"{ref}.1"
    granted = [gpu.uuid for gpu in attempt.gpus]
    assert len(granted) == 2
    body = json.loads((folder / "container.json").read_text())["body"]
    Engine(docker_engine.socket_path).call("POST", "/containers/create", {"name": "seen"}, body)
    try:
        [request] = docker_engine.inspect("seen")["HostConfig"]["DeviceRequests"]
    finally:
        docker_engine.docker("rm", "--force", "seen")
    assert request["DeviceIDs"] == granted
    assert request["Capabilities"] == [["gpu"]]
    free = yard.submit("true", image=IMAGE, gpu_count=0)
    assert ended(yard, free).status.value == "completed"


def test_an_engine_that_ignores_gpus_is_named(make_gpu_yard, podman_engine):
    """R34: podman's service leaves the request out; the job must not run without its GPUs."""
    yard = make_gpu_yard(podman_engine)
    ref = yard.submit("echo ran", image=IMAGE, gpu_count=1, max_retries=3)
    reason = ended(yard, ref).reason
    assert reason.code == "gpu_runtime_missing"
    assert "no notice" in reason.params["message"]
    assert len(yard.attempts(ref)) == 1
    assert "ran" not in log_of(yard, ref)
    assert podman_engine.containers() == []


def test_an_engine_with_gpus_gives_the_granted_ones(make_gpu_yard, engine_with_gpus, tmp_path):
    """R34: its runtime is told exactly those; a job without any gets none, whatever its image."""
    yard = make_gpu_yard(engine_with_gpus)
    script = "echo $NVIDIA_VISIBLE_DEVICES; echo $CUDA_VISIBLE_DEVICES"
    one = yard.submit(f"{script}; sleep 1", image=IMAGE, gpu_count=1)
    two = yard.submit(script, image=IMAGE, gpu_count=2)
    none = yard.submit(script, image=IMAGE, gpu_count=0)
    for ref in (one, two, none):
        assert ended(yard, ref).status.value == "completed"
    for ref, count in ((one, 1), (two, 2)):
        granted = [gpu.uuid for gpu in yard.attempts(ref)[0].gpus]
        assert len(granted) == count
        assert log_of(yard, ref) == [",".join(granted)] * 2
    assert log_of(yard, none) == ["void"]
    assert (tmp_path / "toolkit" / "told").read_text().count('"bundle"') == 2
