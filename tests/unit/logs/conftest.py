"""Log files as attempts leave them."""

import ctypes
import os

import pytest

from runyard.logs.log_file import LogFile

_PUNCH_KEEPING_SIZE = 0x02 | 0x01


@pytest.fixture
def log(tmp_path):
    """Make a log file with these bytes."""

    def make(data=b""):
        path = tmp_path / "out.log"
        path.write_bytes(data)
        return LogFile(str(path))

    return make


@pytest.fixture
def punch():
    """Give back the bytes between two offsets, as the supervisor does with a log over its cap."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]

    def do(log, start, end):
        handle = os.open(log.path, os.O_RDWR)
        try:
            if libc.fallocate(handle, _PUNCH_KEEPING_SIZE, start, end - start) != 0:
                pytest.skip("this file system has no holes: " + os.strerror(ctypes.get_errno()))
        finally:
            os.close(handle)

    return do
