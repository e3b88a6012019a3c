"""Logs that come from nodes: every byte once, and a bridge that stays small."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path

from yards import alive, until

# Lines that say where they are; at the end the checksum of all of them, into a file.
WRITER = (
    "import hashlib, sys, time\n"
    "total, pause, told = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]\n"
    "digest, number, written = hashlib.sha256(), 0, 0\n"
    "out = sys.stdout.buffer\n"
    "while written < total:\n"
    "    block = b''.join(b'%012d %s\\n' % (n, b'x' * 100) for n in range(number, number + 500))\n"
    "    number += 500\n"
    "    digest.update(block); out.write(block); out.flush(); written += len(block)\n"
    "    time.sleep(pause)\n"
    "open(told, 'w').write(digest.hexdigest())\n"
)


def copy_of(yard, ref) -> Path:
    return yard.data / "attempts" / f"{ref}.1" / "out.log"


def checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no Pss")


def test_log_offset_resume(ray_yard, tmp_path):
    """R34: the bridge is killed while a log is being copied; the copy is the log, byte by byte."""
    told = tmp_path / "checksum"
    command = [sys.executable, "-c", WRITER, str(6 << 20), "0.02", str(told)]
    ref = ray_yard.submit(command)
    path = copy_of(ray_yard, ref)
    for part in (1, 3):
        until(lambda part=part: path.exists() and path.stat().st_size > part << 20, 90)
        bridge = ray_yard.bridge()
        os.kill(bridge, signal.SIGKILL)
        until(lambda bridge=bridge: not alive(bridge), 60)
    ray_yard.wait(ref, "completed", seconds=120)
    assert checksum(path) == told.read_text()


def test_log_memory_bound(make_ray_yard, tmp_path):
    """R34: 200 MB through the cluster, and the bridge stays below 150 MB."""
    yard = make_ray_yard(env={"RUNYARD_LOG_CAP_MB": "400"}).start()
    told = tmp_path / "checksum"
    ref = yard.submit([sys.executable, "-c", WRITER, str(200_000_000), "0", str(told)])
    path = copy_of(yard, ref)
    until(lambda: path.exists() and path.stat().st_size > 100_000_000, 150)
    assert pss_mb(yard.bridge()) < 150
    yard.wait(ref, "completed", seconds=150)
    assert pss_mb(yard.bridge()) < 150
    assert checksum(path) == told.read_text()


def test_a_log_past_its_cap_keeps_both_ends(make_ray_yard, tmp_path):
    """The middle of a log that is too long is given back on the node, and in the copy."""
    yard = make_ray_yard(env={"RUNYARD_LOG_CAP_MB": "8"}).start()
    told = tmp_path / "checksum"
    command = [sys.executable, "-c", WRITER, str(40_000_000), "0.015", str(told)]
    ref = yard.submit(command)
    yard.wait(ref, "completed", seconds=150)
    path = copy_of(yard, ref)
    assert path.stat().st_blocks * 512 < 30_000_000
    assert path.stat().st_size >= 40_000_000
    with open(path, "rb") as file:
        assert file.read(13) == b"000000000000 "
    assert yard.logs(ref, tail=1)[0].endswith("x" * 100)
