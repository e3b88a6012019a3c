"""How much memory a tree holds that only ending it gives back."""

import mmap
import os
import signal

from runyard.supervisor import limits


def test_pages_of_files_do_not_count(tmp_path):
    """A mapped data set is the page cache's, however much of it was read."""
    path = tmp_path / "data"
    path.write_bytes(bytes(32 << 20))
    before = limits.memory_used_mb([os.getpid()], 1 << 20)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        assert sum(data[::4096]) == 0
        assert limits.memory_used_mb([os.getpid()], 1 << 20) < before + 16


def test_shared_pages_are_divided_where_it_matters():
    block = mmap.mmap(-1, 64 << 20)
    block.write(bytes(64 << 20))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        assert sum(block[::4096]) == 0
        os.write(writer, b"r")
        signal.pause()
    try:
        os.read(reader, 1)
        both = [os.getpid(), pid]
        cheap = limits.memory_used_mb(both, 1 << 20)
        divided = limits.memory_used_mb(both, 1)
        assert cheap - divided >= 60
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        block.close()


def test_a_process_that_is_gone_holds_nothing():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert limits.memory_used_mb([pid], 0) == 0
