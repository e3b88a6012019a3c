"""GPU memory of a slice, as its node reads it: given back, held, shared, unknown."""

from __future__ import annotations

import os
import threading
import time

import pytest

from runyard.ray_bridge import slice_gpus
from runyard.ray_bridge.slice_gpus import SliceGpus
from scripted_gpus import ScriptedGpus
from yards import until


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = ScriptedGpus(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "gpus.json")


def begun(path, visible="1", *, shared=False) -> SliceGpus:
    """With what was there before it known."""
    made = SliceGpus(path)
    made.look_before()
    until(lambda: made._before is not None, 30)
    made.started(visible, shared=shared)
    return made


def noted(gpus: SliceGpus, uuid: str, used_mb: int) -> None:
    gpus.note()
    until(lambda: gpus._known["used"].get(uuid) == used_mb, 30)


def test_memory_is_told_before_and_after(machine, path):
    """R2: what it held at the last look, and what is used now."""
    gpus = begun(path)
    machine.use(gpu1=5000)
    noted(gpus, machine.uuid(1), 5000)
    machine.use(gpu1=11)
    told = gpus.given_back(30)
    [gpu] = told["gpus"]
    assert (gpu["index"], gpu["memory_before_mb"], gpu["memory_after_mb"]) == (1, 5000, 11)
    assert (told["held"], told["unread"]) == ([], False)


def test_memory_that_is_not_back_is_held(machine, path):
    gpus = begun(path)
    machine.use(gpu1=5000, gpu2=5000)
    [held] = gpus.given_back(0.0)["held"]
    assert (held["index"], held["used_mb"]) == (1, 5000)
    later = threading.Timer(0.3, machine.use, kwargs={"gpu1": 100})
    later.start()
    assert gpus.given_back(30)["held"] == []
    later.join()


def test_named_by_uuid(machine, path):
    gpus = begun(path, machine.uuid(2))
    machine.use(gpu2=5000)
    [held] = gpus.given_back(0.0)["held"]
    assert held["index"] == 2


def test_another_actor_knows_what_was_before(machine, path):
    """The first one died."""
    gpus = begun(path)
    machine.use(gpu1=5000)
    noted(gpus, machine.uuid(1), 5000)
    other = SliceGpus(path)
    assert [one["index"] for one in other.given_back(0.0)["held"]] == [1]
    machine.use(gpu1=0)
    [gpu] = other.given_back(30)["gpus"]
    assert (gpu["memory_before_mb"], gpu["memory_after_mb"]) == (5000, 0)


def test_a_shared_gpu_is_not_waited_for(machine, path):
    gpus = begun(path, shared=True)
    machine.use(gpu1=5000)
    told = gpus.given_back(30)
    assert (told["held"], told["gpus"][0]["memory_after_mb"]) == ([], 5000)


def test_memory_of_somebody_elses_process_is_not_waited_for(machine, path):
    gpus = begun(path)
    machine.use(gpu1=5000)
    machine.users(gpu1=os.getpid())
    assert gpus.given_back(30)["held"] == []


def test_what_was_read_too_late_is_not_what_was_before(machine, path, monkeypatch):
    """The job may hold it by then: little is good enough, much is waited for only so long."""
    monkeypatch.setattr(slice_gpus, "_BEFORE_S", -1.0)
    machine.use(gpu1=5000)
    gpus = SliceGpus(path)
    gpus.started("1", shared=False)
    gpus._look_before()
    assert gpus._known["before"] == {}
    assert [one["index"] for one in gpus.given_back(0.0)["held"]] == [1]
    monkeypatch.setattr(slice_gpus, "_UNKNOWN_PATIENCE_S", 0.0)
    assert gpus.given_back(0.0)["held"] == []


def test_gpus_that_cannot_be_read_any_more(machine, path):
    gpus = begun(path)
    machine.fail()
    assert gpus.given_back(0.0) == {"gpus": [], "held": [], "unread": True}


def test_a_machine_without_the_program_is_quiet_and_quick(tmp_path, path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    gpus = SliceGpus(path)
    assert not gpus.can_tell
    gpus.look_before()
    gpus.started("0", shared=False)
    gpus.note()
    began = time.monotonic()
    assert gpus.given_back(600) == {"gpus": [], "held": [], "unread": False}
    assert time.monotonic() - began < 30


def test_a_program_that_fails_is_as_good_as_none(machine, path):
    machine.fail()
    gpus = SliceGpus(path)
    gpus._look_before()
    gpus.started("0", shared=False)
    assert gpus.given_back(600) == {"gpus": [], "held": [], "unread": False}
