"""The kernel's log: what is kept of it, of which GPU it speaks, and that its absence is quiet."""

from __future__ import annotations

import os
import time

import pytest

from runyard.probes import kernel_log
from runyard.probes.kernel_log import KernelLog

BOOTED = 1_000_000.0
KILL = "Out of memory: Killed process 4711 (python3) total-vm:81231232kB"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."


def record(seconds, text, number=1):
    return f"4,{number},{int(seconds * 1e6)},-;{text}\n SUBSYSTEM=pci\n"


@pytest.fixture
def gpus(tmp_path):
    place = tmp_path / "gpus" / "0000:3B:00.0"
    place.mkdir(parents=True)
    (place / "information").write_text("Model: \t\t H200\nGPU UUID: \t GPU-ab12-cd34\n")
    return tmp_path / "gpus"


@pytest.fixture
def log(tmp_path, gpus):
    device = tmp_path / "kmsg"
    device.write_text("")
    made = KernelLog(str(device), gpus, clock=lambda: BOOTED + 500.0, running=lambda: 500.0)
    yield made, device
    made.close()


def add(device, *records):
    with device.open("a") as file:
        file.write("".join(records))


def test_only_what_tells_of_failures_is_kept(log):
    """R18"""
    made, device = log
    add(device, record(10, "usb 1-1: new device"), record(20, KILL), record(30, "eth0: up"))
    [line] = made.since(0)
    assert (line.at, line.text, line.gpu_uuid) == (BOOTED + 20, KILL, "")


def test_an_error_names_its_gpu(log):
    made, device = log
    add(device, record(40, XID), record(50, XID.replace("3b", "5e")))
    assert [line.gpu_uuid for line in made.since(0)] == ["GPU-ab12-cd34", ""]


def test_each_look_reads_what_is_new_and_tells_all_since(log):
    made, device = log
    add(device, record(20, KILL))
    assert len(made.since(0)) == 1
    add(device, record(60, XID))
    assert [line.text for line in made.since(BOOTED + 30)] == [XID]
    assert [line.text for line in made.since(0)] == [KILL, XID]


def test_no_more_is_kept_than_is_needed(log):
    made, device = log
    add(device, *(record(one, KILL, one) for one in range(kernel_log.MOST_KEPT + 50)))
    seen = made.since(0)
    assert len(seen) == kernel_log.MOST_KEPT
    assert seen[-1].at == BOOTED + kernel_log.MOST_KEPT + 49


def test_broken_records_are_skipped(log):
    made, device = log
    add(device, "nonsense Out of memory: Killed process\n", "4,x,y;NVRM: Xid\n", record(70, KILL))
    assert [line.at for line in made.since(0)] == [BOOTED + 70]


def test_where_there_is_none_nothing_is_said(tmp_path):
    assert KernelLog(str(tmp_path / "nothing")).since(0) == []
    assert KernelLog(str(tmp_path)).since(0) == []  # cannot be read as a file


def test_the_real_one_can_be_asked():
    """Empty where it may not be read; never an exception, and never a wait."""
    before = time.monotonic()
    made = KernelLog()
    try:
        assert isinstance(made.since(time.time() - 60), list)
    finally:
        made.close()
    assert time.monotonic() - before < 30
    assert os.path.exists("/proc")
