"""What is measured of a machine again and again."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import psutil
import pytest

from runyard.probes.node_meter import PsutilMeter


def disk_folder(sys, path):
    device = os.stat(path).st_dev
    folder = sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
    folder.mkdir(parents=True)
    return folder


def sectors(folder, read, written):
    (folder / "stat").write_text(f"1 2 {read} 4 5 6 {written} 8 9 10 11\n")


def test_this_machine(tmp_path):
    """R14."""
    meter = PsutilMeter(tmp_path)
    first = meter.read()
    assert first.cpu_percent is None  # a rate needs two looks
    assert first.disk_read_mb_s is None
    assert 0 < first.memory_percent <= 100
    assert 0 < first.memory_used_mb < psutil.virtual_memory().total / (1 << 20)
    assert 0 <= first.disk_percent <= 100
    assert first.disk_free_gb == pytest.approx(psutil.disk_usage(str(tmp_path)).free / 2**30, 0.2)
    until = time.process_time() + 0.1  # used, not only passed
    while time.process_time() < until:
        pass
    second = meter.read()
    assert 0 < second.cpu_percent <= 100
    assert second.net_in_mb_s is None or second.net_in_mb_s >= 0


def test_rates_of_the_disk_that_holds_the_data(tmp_path, clock):
    sys = tmp_path / "sys"
    folder = disk_folder(sys, tmp_path)
    sectors(folder, 1000, 5000)
    meter = PsutilMeter(tmp_path, clock=clock, sys=sys)
    meter.read()
    clock.now += 10.0
    sectors(folder, 1000 + 20480, 5000 + 40960)  # 10 and 20 MiB
    reading = meter.read()
    assert reading.disk_read_mb_s == pytest.approx(1.0)
    assert reading.disk_write_mb_s == pytest.approx(2.0)


def test_a_counter_that_goes_back_gives_no_rate(tmp_path, clock):
    sys = tmp_path / "sys"
    folder = disk_folder(sys, tmp_path)
    sectors(folder, 5000, 5000)
    meter = PsutilMeter(tmp_path, clock=clock, sys=sys)
    meter.read()
    clock.now += 1.0
    sectors(folder, 10, 10)
    assert meter.read().disk_read_mb_s is None


def test_a_clock_that_stands_still_gives_no_rate(tmp_path, clock):
    sys = tmp_path / "sys"
    sectors(disk_folder(sys, tmp_path), 1, 1)
    meter = PsutilMeter(tmp_path, clock=clock, sys=sys)
    meter.read()
    assert meter.read().disk_read_mb_s is None


@pytest.mark.parametrize("text", ["", "one two three", "1 2 x 4 5 6 7"])
def test_a_disk_that_tells_nothing(tmp_path, clock, text):
    sys = tmp_path / "sys"
    (disk_folder(sys, tmp_path) / "stat").write_text(text)
    meter = PsutilMeter(tmp_path, clock=clock, sys=sys)
    meter.read()
    clock.now += 1.0
    reading = meter.read()
    assert reading.disk_read_mb_s is None
    assert reading.disk_free_gb is not None


def test_a_folder_that_is_gone(tmp_path, clock):
    reading = PsutilMeter(tmp_path / "gone", clock=clock).read()
    assert reading.disk_percent is None
    assert reading.disk_free_gb is None


def test_bridges_and_tunnels_do_not_count_twice(tmp_path, clock, monkeypatch):
    sys = tmp_path / "sys"
    (sys / "class/net/eth0/device").mkdir(parents=True)
    counted = {"eth0": 0, "docker0": 0, "lo": 0}

    def counters(pernic):
        assert pernic
        return {
            name: SimpleNamespace(bytes_recv=n, bytes_sent=2 * n) for name, n in counted.items()
        }

    monkeypatch.setattr(psutil, "net_io_counters", counters)
    meter = PsutilMeter(tmp_path, clock=clock, sys=sys)
    meter.read()
    clock.now += 1.0
    counted.update(eth0=1 << 20, docker0=1 << 20, lo=9 << 20)
    reading = meter.read()
    assert (reading.net_in_mb_s, reading.net_out_mb_s) == (1.0, 2.0)
