"""Other queues to compare with: used when installed, installed only when asked for.

`python benchmarks/peers.py --install tsp slurm huey hyperqueue ray celery` puts them in place.
Debian packages need root, and their daemons are not started: the benchmarks start their own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACES = HERE.parent / "build" / "peers"
FROM_INDEX = {
    "huey": "huey",
    "hyperqueue": "hyperqueue",
    "ray": "ray[default]",
    "celery": "celery[redis]",
}
FROM_DEBIAN = {
    "tsp": ("task-spooler",),
    "slurm": ("slurmctld", "slurmd", "slurm-client", "munge"),
    "celery": ("redis-server",),
}
LIMIT_S = 180


def python_of(name: str) -> Path | None:
    """The interpreter of a peer's own environment, or None when it is not installed."""
    path = PLACES / name / "bin" / "python"
    return path if path.exists() else None


def has_tsp() -> bool:
    return shutil.which("tsp") is not None


def install(names: list[str]) -> None:
    for name in names:
        if packages := FROM_DEBIAN.get(name):
            # As in single-user mode: what is installed is not started.
            subprocess.run(
                ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages],
                env={**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"},
                check=True,
            )
        if name in FROM_INDEX:
            place = PLACES / name
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run(
                [place / "bin/python", "-m", "pip", "install", "-q", FROM_INDEX[name]], check=True
            )


@contextmanager
def task_spooler(slots: int) -> Iterator[TaskSpooler]:
    with tempfile.TemporaryDirectory(prefix="tsp-") as folder:
        spooler = TaskSpooler(Path(folder), slots)
        try:
            yield spooler
        finally:
            spooler.call("-K")


class TaskSpooler:
    def __init__(self, folder: Path, slots: int) -> None:
        self.environment = {**os.environ, "TS_SOCKET": str(folder / "s"), "TMPDIR": str(folder)}
        self.environment["TS_MAXFINISHED"] = "10"
        self.call("-S", str(slots))

    def call(self, *words: str) -> str:
        return subprocess.run(
            ["tsp", *words], env=self.environment, capture_output=True, text=True, check=False
        ).stdout

    def submit(self, command: list[str]) -> None:
        self.call("-n", *command)

    def drain(self) -> None:
        while any(" running " in line or " queued " in line for line in self.call().splitlines()):
            time.sleep(0.01)


def finished_rate_of(name: str, count: int) -> float | None:
    """Jobs per second with two slots, measured by the peer's own script; None if not there."""
    python = python_of(name)
    script = HERE / "peer_scripts" / f"{name}_rate.py"
    if python is None or not script.exists():
        return None
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        try:
            done = subprocess.run(
                [python, script, str(count)],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            print(f"  {name}: not done after {LIMIT_S} s")
            return None
    if done.returncode != 0:
        print(f"  {name}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    known = sorted({*FROM_DEBIAN, *FROM_INDEX})
    parser.add_argument("--install", nargs="+", choices=known, default=[])
    install(parser.parse_args().install)
