"""What else a job can leave behind: shared memory, temp files, ports, GPU locks (R41)."""

import fcntl
import os
import socket
import sys
import uuid

import pytest
from keeper_yard import wait_for

from yards import free_port

HOLD_SHARED_MEMORY = """
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 1 << 20)
memory = mmap.mmap(fd, 1 << 20)
memory[:] = b"x" * (1 << 20)
os.close(fd)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def shared_name():
    path = f"/dev/shm/runyard-test-{uuid.uuid4().hex}"
    yield path
    if os.path.exists(path):
        os.unlink(path)


def start_holder(yard, path):
    attempt_id = yard.start_python(HOLD_SHARED_MEMORY, path)
    wait_for(lambda: b"ready" in yard.log(attempt_id), "the mapping")
    return attempt_id


@pytest.mark.parametrize("grace", [0.0, 2.0])
def test_shm_raw_file_removed(yard, shared_name, grace):
    attempt_id = start_holder(yard, shared_name)
    yard.stop(attempt_id, grace_s=grace)
    end = yard.wait_end(attempt_id)
    assert not os.path.exists(shared_name)
    assert end["shm_bytes"] == 1 << 20


def test_shm_raw_file_removed_by_keeper(yard, shared_name):
    code = "import os, sys\nos.setsid()\n" + HOLD_SHARED_MEMORY
    launcher = "import subprocess, sys\nsubprocess.run(sys.argv[1:])"

    attempt_id = yard.start_python(launcher, sys.executable, "-I", "-S", "-c", code, shared_name)
    wait_for(lambda: b"ready" in yard.log(attempt_id), "the mapping")
    os.kill(yard.supervisor_pid(attempt_id), 9)
    yard.wait_end(attempt_id)
    assert not os.path.exists(shared_name)


def test_shm_shared_with_living_job_kept(yard, shared_name):
    first = start_holder(yard, shared_name)
    second = start_holder(yard, shared_name)
    yard.stop(first, grace_s=0)
    assert yard.wait_end(first)["shm_bytes"] == 0
    assert os.path.exists(shared_name)
    yard.stop(second, grace_s=0)
    yard.wait_end(second)
    assert not os.path.exists(shared_name)


def test_shm_python_removed(yard):
    """The resource tracker gets the moment it needs: it knows names that are mapped nowhere."""
    code = """
from multiprocessing import shared_memory
import time
block = shared_memory.SharedMemory(create=True, size=1 << 20)
unmapped = shared_memory.SharedMemory(create=True, size=1 << 20)
names = block.name, unmapped.name
unmapped.close()
print(*names, flush=True)
time.sleep(600)
"""

    attempt_id = yard.start([sys.executable, "-c", code])
    wait_for(lambda: yard.log(attempt_id).endswith(b"\n"), "the blocks")
    names = yard.log(attempt_id).decode().split()
    yard.stop(attempt_id, grace_s=0)
    yard.wait_end(attempt_id)
    for name in names:
        assert not os.path.exists(f"/dev/shm/{name}")


def test_tempdir_removed(yard):
    command = 'mkdir -p "$TMPDIR/a/b"; echo x > "$TMPDIR/a/b/c"; echo "$TMPDIR"'
    attempt_id = yard.start(["/bin/sh", "-c", command])
    assert yard.wait_end(attempt_id)["temp_removed"]
    assert not os.path.exists(yard.log(attempt_id).decode().strip())


def test_listening_port_free_after_cancel(yard):
    code = """
import os, socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
os.set_inheritable(s.fileno(), True)
if os.fork() == 0:
    os.setsid()
print("up", flush=True)
time.sleep(600)
"""
    port = free_port()
    attempt_id = yard.start_python(code, str(port))
    wait_for(lambda: yard.log(attempt_id).count(b"\n") == 2, "both processes")
    yard.stop(attempt_id, grace_s=0)
    yard.wait_end(attempt_id)
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


def test_gpu_lock_held_while_the_attempt_lives(yard, tmp_path):
    path = str(tmp_path / "gpu")
    locks = [{"path": path, "shared": False, "server_id": "us"}]
    attempt_id = yard.start(["/bin/sleep", "600"], gpu_locks=locks)
    yard.wait_job(attempt_id)
    second = yard.start(["/bin/true"], gpu_locks=locks)
    end = yard.wait_end(second)
    assert (end["cause"], end["owner"], end["path"]) == ("gpu_locked", "us", path)
    yard.stop(attempt_id)
    yard.wait_end(attempt_id)
    wait_for(lambda: lockable(path), "the lock to be free")
    assert yard.wait_end(yard.start(["/bin/true"], gpu_locks=locks))["code"] == 0


def test_gpu_lock_shared_by_one_server_only(yard, tmp_path):
    path = str(tmp_path / "gpu")
    ours = [{"path": path, "shared": True, "server_id": "us"}]
    theirs = [{"path": path, "shared": True, "server_id": "them"}]
    first = yard.start(["/bin/sleep", "600"], gpu_locks=ours)
    yard.wait_job(first)
    second = yard.start(["/bin/sh", "-c", "exit 2"], gpu_locks=ours)
    assert yard.wait_end(second)["code"] == 2
    third = yard.start(["/bin/true"], gpu_locks=theirs)
    assert yard.wait_end(third)["cause"] == "gpu_locked"


def lockable(path):
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_common_end_is_quick(yard):
    """No leftovers, nothing to wait for: an end is not delayed by any grace."""
    for _ in range(10):
        yard.wait_end(yard.start(["/bin/true"], leftover_grace_s=600, grace_s=600))
