"""The GPU probe against a scripted NVML; on a machine with a GPU also against the real one."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_nvml import ScriptedGpu, ScriptedNvml
from set_clock import SetClock

from runyard.domain.resources import Gpu
from runyard.probes import device_holders, gpu, gpu_topology
from runyard.probes.gpu import NvmlProbe

MB = 1 << 20


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "1000"])
    yield process.pid
    process.kill()
    process.wait()


def probe_of(*gpus, pool=None, clock=None, **library):
    nvml = ScriptedNvml(*gpus, **library)
    return NvmlProbe(pool, clock=clock or SetClock(), library=nvml), nvml


def test_what_is_there():
    probe, _ = probe_of(
        ScriptedGpu("GPU-a"), ScriptedGpu(b"GPU-b", name=b"NVIDIA A100", total=40 << 30)
    )
    assert probe.gpus() == [
        Gpu(0, "GPU-a", "NVIDIA H100", 81920, ""),
        Gpu(1, "GPU-b", "NVIDIA A100", 40960, ""),
    ]


def test_a_pool_by_index():
    """R55: available_gpus=[0, 2] as the pool."""
    gpus = [ScriptedGpu(f"GPU-{index}") for index in range(4)]
    probe, _ = probe_of(*gpus, pool=(0, 2, 9))
    assert [found.index for found in probe.gpus()] == [0, 2]
    assert probe.processes("GPU-1") == []
    assert probe.used_mb("GPU-1") == 0


def test_the_inventory_is_not_taken_at_every_call():
    clock = SetClock()
    probe, nvml = probe_of(ScriptedGpu("GPU-a"), clock=clock)
    for _ in range(10):
        probe.gpus()
    assert nvml.calls == ["init", "count"]
    clock.now += gpu.INVENTORY_S
    nvml.gpus.append(ScriptedGpu("GPU-b"))
    assert len(probe.gpus()) == 2
    assert nvml.calls == ["init", "count", "count"]


def test_a_driver_that_is_not_loaded_is_asked_again_later():
    clock = SetClock()
    probe, nvml = probe_of(ScriptedGpu("GPU-a"), clock=clock, driver=False)
    assert probe.gpus() == []
    nvml.driver = True
    assert probe.gpus() == []
    clock.now += gpu.INVENTORY_S
    assert len(probe.gpus()) == 1


def test_gpus_that_fell_off_the_bus_are_left_out():
    probe, _ = probe_of(
        ScriptedGpu("GPU-a", broken=frozenset({"handle"})),
        ScriptedGpu("GPU-b", broken=frozenset({"uuid"})),
        ScriptedGpu("GPU-c", broken=frozenset({"name", "memory", "minor", "pci", "p2p"})),
        ScriptedGpu("GPU-d"),
    )
    assert probe.gpus() == [
        Gpu(2, "GPU-c", "GPU", 0, ""),
        Gpu(3, "GPU-d", "NVIDIA H100", 81920, ""),
    ]
    assert probe.used_mb("GPU-c") == 0


def test_closing():
    probe, nvml = probe_of(ScriptedGpu("GPU-a"))
    probe.close()
    assert nvml.calls == []
    probe.gpus()
    probe.close()
    assert nvml.calls == ["init", "count", "shutdown"]
    assert len(probe.gpus()) == 1


@pytest.mark.parametrize(("newer", "used"), [(True, 100), (False, 600)])
def test_used_memory_leaves_out_what_the_driver_reserves_if_it_can(newer, used):
    probe, _ = probe_of(ScriptedGpu("GPU-a", used=100 * MB), newer=newer)
    assert probe.used_mb("GPU-a") == used


def test_used_memory_with_an_old_library():
    probe, nvml = probe_of(ScriptedGpu("GPU-a", used=100 * MB))
    nvml.nvmlMemory_v2 = None
    assert probe.used_mb("GPU-a") == 600


def test_processes_are_named_with_user_and_program(child):
    scripted = ScriptedGpu(
        "GPU-a",
        used=1000 * MB,
        compute=[(child, 900 * MB), (os.getpid(), 100 * MB)],
        graphics=[(child, 10 * MB)],
    )
    probe, _ = probe_of(scripted)
    found = {process.pid: process for process in probe.processes("GPU-a")}
    assert set(found) == {child, os.getpid()}
    assert found[child].memory_mb == 900
    assert found[child].name == "sleep"
    assert found[child].user == pwd.getpwuid(os.getuid()).pw_name


def test_no_processes_no_search(monkeypatch):
    monkeypatch.setattr(device_holders, "cuda_holders", _must_not_be_called)
    probe, _ = probe_of(ScriptedGpu("GPU-a", used=10 * MB))
    assert probe.processes("GPU-a") == []


def test_amounts_the_driver_does_not_tell(child, monkeypatch):
    monkeypatch.setattr(device_holders, "cuda_holders", _must_not_be_called)
    probe, _ = probe_of(ScriptedGpu("GPU-a", used=9000 * MB, compute=[(child, None)]))
    assert [(p.pid, p.memory_mb) for p in probe.processes("GPU-a")] == [(child, 0)]


def _must_not_be_called(*_):
    raise AssertionError("/proc was searched without need")


def test_the_worker_that_keeps_a_dead_parents_memory_is_found(child, monkeypatch):
    """The driver goes on naming the dead process."""
    asked = []
    monkeypatch.setattr(
        device_holders, "cuda_holders", lambda minor: asked.append(minor) or [child]
    )
    scripted = ScriptedGpu("GPU-a", minor=3, used=31000 * MB, compute=[(2**22 + 7, 31000 * MB)])
    probe, _ = probe_of(scripted)
    assert [process.pid for process in probe.processes("GPU-a")] == [child]
    assert asked == [3]


def test_memory_nobody_is_named_for_is_searched(child, monkeypatch):
    monkeypatch.setattr(device_holders, "cuda_holders", lambda _: [child])
    probe, _ = probe_of(ScriptedGpu("GPU-a", used=5000 * MB))
    assert [process.pid for process in probe.processes("GPU-a")] == [child]


def test_a_holder_we_cannot_see_is_still_a_holder(monkeypatch):
    """Another user's or another container's process: its number is all there is."""
    monkeypatch.setattr(device_holders, "cuda_holders", lambda _: [])
    far = 2**22 + 7
    probe, _ = probe_of(ScriptedGpu("GPU-a", used=5000 * MB, compute=[(far, 5000 * MB)]))
    assert [(p.pid, p.user, p.name) for p in probe.processes("GPU-a")] == [(far, "", "")]


def test_quiet_without_a_driver(monkeypatch):
    monkeypatch.setattr(gpu, "_DRIVER_FILES", ())
    probe = NvmlProbe()
    assert probe.gpus() == []
    assert probe.processes("GPU-a") == []
    assert probe.used_mb("GPU-a") == 0
    probe.close()


def test_the_library_is_loaded_only_when_a_driver_is_there():
    code = (
        "import sys; from runyard.probes.gpu import NvmlProbe; import runyard.probes.gpu as gpu;"
        "gpu._DRIVER_FILES = (); NvmlProbe().gpus(); assert 'pynvml' not in sys.modules;"
        "assert 'psutil' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_library_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "_DRIVER_FILES", (str(tmp_path),))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert NvmlProbe().gpus() == []


def test_the_real_library_says_the_same_as_the_script():
    """Every function and constant the script has is one of pynvml's."""
    import pynvml

    for name in vars(ScriptedNvml):
        if name.startswith(("nvml", "NVML")):
            assert hasattr(pynvml, name), name


def test_the_real_library_without_a_gpu_or_with_one():
    probe = NvmlProbe()
    for found in probe.gpus():
        assert found.uuid.startswith("GPU-")
        assert found.memory_mb > 0
        assert probe.used_mb(found.uuid) <= found.memory_mb
        probe.processes(found.uuid)
    probe.close()


# topology


def groups(*gpus, sys_pci=Path("/nowhere")):
    nvml = ScriptedNvml(*gpus)
    return gpu_topology.group_names(nvml, {i: i for i in range(len(gpus))}, sys_pci)


def test_nvlink_islands():
    pairs = [(1,), (0,), (3,), (2,), ()]
    found = groups(*(ScriptedGpu(f"GPU-{i}", linked=linked) for i, linked in enumerate(pairs)))
    assert found == {0: "nvlink-0", 1: "nvlink-0", 2: "nvlink-2", 3: "nvlink-2", 4: ""}


def test_islands_that_meet_become_one():
    # 0-1 and 2-3 are seen first, then 1-2 joins them
    linked = [(1,), (2,), (3,), ()]
    assert set(groups(*(ScriptedGpu("g", linked=to) for to in linked)).values()) == {"nvlink-0"}


def test_numa_nodes(tmp_path):
    for name, node in (("0000:1b:00.0", "0"), ("0000:9c:00.0", "1"), ("0000:9d:00.0", "-1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "numa_node").write_text(node + "\n")
    found = groups(
        ScriptedGpu("a"),
        ScriptedGpu("b", bus_id=b"00000000:9C:00.0"),
        ScriptedGpu("c", bus_id="00000000:9D:00.0"),
        ScriptedGpu("d", bus_id="00000000:FF:00.0"),
        sys_pci=tmp_path,
    )
    assert found == {0: "numa-0", 1: "numa-1", 2: "", 3: ""}


# holders of device files


def fake_process(proc, pid, *files):
    folder = proc / str(pid) / "fd"
    folder.mkdir(parents=True)
    for number, file in enumerate(files):
        (folder / str(number)).symlink_to(file)


def test_holders_have_the_gpu_open_more_often_than_those_who_watch(tmp_path):
    fake_process(tmp_path, 10, *["/dev/nvidia0"] * 17, "/dev/nvidia-uvm", "/dev/null")
    fake_process(tmp_path, 11, *["/dev/nvidia0"] * 3, "/dev/nvidia-uvm", "/dev/nvidiactl")
    fake_process(tmp_path, 12, *["/dev/nvidia1"] * 17)
    fake_process(tmp_path, os.getpid(), *["/dev/nvidia0"] * 20)
    (tmp_path / "10" / "fd" / "99").write_text("no link")
    (tmp_path / "13").mkdir()  # gone, or not ours to look into
    (tmp_path / "self").mkdir()
    # we have it open twenty times ourselves, and only watch
    assert device_holders.cuda_holders(0, tmp_path) == []
    shutil.rmtree(tmp_path / str(os.getpid()))
    assert device_holders.cuda_holders(0, tmp_path) == [10]
    assert device_holders.cuda_holders(1, tmp_path) == [12]


def test_the_living_and_the_dead(child):
    assert device_holders.is_alive(child)
    assert not device_holders.is_alive(2**22 + 7)
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    assert not device_holders.is_alive(zombie.pid)
    zombie.wait()


def test_users_without_a_name(monkeypatch, child):
    def nameless(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nameless)
    assert device_holders.user_of(child) == str(os.getuid())
    assert device_holders.user_of(2**22 + 7) == ""
    assert device_holders.name_of(2**22 + 7) == ""
