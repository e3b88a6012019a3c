"""A disk that is soon full: some megabytes of memory, mounted for one test."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(point: Path, megabytes: int) -> Iterator[Path]:
    """Where it cannot be mounted the test is skipped; in CI a skip is a failure."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    point.mkdir()
    options = f"size={megabytes}m,mode=0700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "runyard-test", point],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not possible here: {mounted.stderr}")
    try:
        yield point
    finally:
        subprocess.run(["umount", "--lazy", point], check=True)


def fill(path: Path) -> None:
    """Take every byte that is left."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 1 << 12, 1):
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            _write_on(fd, b"x" * size)
    os.close(fd)


def _write_on(fd: int, piece: bytes) -> None:
    while True:
        os.write(fd, piece)
