"""What is measured of GPUs again and again, with a scripted driver."""

from __future__ import annotations

import pytest
from scripted_nvml import ScriptedGpu, ScriptedNvml

from runyard.probes.gpu import NvmlProbe

XID = 8
ALL = frozenset({"util", "temperature", "power", "ecc", "reasons", "events", "memory"})


def test_a_reading():
    """R14."""
    nvml = ScriptedNvml(
        ScriptedGpu("GPU-a", used=20 << 30, util=93, degrees=71, milliwatts=412_500, ecc=2)
    )
    [reading] = NvmlProbe(library=nvml).readings()
    assert (reading.index, reading.uuid) == (0, "GPU-a")
    assert (reading.util, reading.memory_mb, reading.memory_percent) == (93.0, 20480.0, 25.0)
    assert (reading.temperature, reading.power_w, reading.ecc_errors) == (71.0, 412.5, 2)
    assert (reading.xids, reading.throttled) == ((), False)


@pytest.mark.parametrize(
    ("bits", "throttled"), [(0x1, False), (0x4, False), (0x8, True), (0x20, True), (0xC4, True)]
)
def test_a_power_limit_is_no_trouble_and_heat_is(bits, throttled):
    [reading] = NvmlProbe(library=ScriptedNvml(ScriptedGpu("GPU-a", slowed=bits))).readings()
    assert reading.throttled is throttled


def test_what_a_gpu_does_not_tell_is_absent():
    [reading] = NvmlProbe(library=ScriptedNvml(ScriptedGpu("GPU-a", broken=ALL))).readings()
    assert (reading.util, reading.temperature, reading.power_w) == (None, None, None)
    assert (reading.ecc_errors, reading.xids, reading.throttled) == (None, None, None)


def test_errors_are_told_once_and_to_the_right_gpu():
    nvml = ScriptedNvml(ScriptedGpu("GPU-a"), ScriptedGpu(b"GPU-b"))
    probe = NvmlProbe(library=nvml)
    assert [reading.xids for reading in probe.readings()] == [(), ()]
    nvml.events += [(1, XID, 48), (1, XID, 45), (0, 0x1, 5)]
    assert [reading.xids for reading in probe.readings()] == [(), (48, 45)]
    assert [reading.xids for reading in probe.readings()] == [(), ()]
    assert nvml.calls.count("events") == 1
    probe.close()
    assert "events freed" in nvml.calls


def test_a_driver_without_events():
    nvml = ScriptedNvml(ScriptedGpu("GPU-a", broken=frozenset({"events"})), ScriptedGpu("GPU-b"))
    assert [reading.xids for reading in NvmlProbe(library=nvml).readings()] == [None, ()]


def test_memory_of_processes():
    nvml = ScriptedNvml(
        ScriptedGpu("GPU-a", compute=[(11, 4 << 30), (12, None)], graphics=[(11, 1 << 30)])
    )
    probe = NvmlProbe(library=nvml)
    assert probe.memory_by_process("GPU-a") == {11: 4096, 12: 0}
    assert probe.memory_by_process("GPU-z") == {}


def test_without_a_driver_there_is_nothing():
    probe = NvmlProbe(library=ScriptedNvml(driver=False))
    assert probe.readings() == []
    assert probe.memory_by_process("GPU-a") == {}
