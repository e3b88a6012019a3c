"""The log belongs to the job: killing whoever watches loses nothing, and its size is bounded."""

import os
import signal

from keeper_yard import wait_for

MIB = 1 << 20


def test_log_survives_shim_kill9(yard):
    """Every line written before the tree was ended is there."""
    attempt_id = yard.start(["/bin/sh", "-c", "for i in 1 2 3; do echo line $i; done; sleep 600"])
    wait_for(lambda: b"line 3" in yard.log(attempt_id), "the lines")
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    yard.wait_end(attempt_id)
    assert yard.log(attempt_id) == b"line 1\nline 2\nline 3\n"


def test_log_survives_server_kill9(yard):
    yard.stop_listening()
    attempt_id = yard.start(["/bin/sh", "-c", "sleep 0.2; echo done"])
    assert yard.wait_end(attempt_id)["log_bytes"] == 5
    yard.listen()


def test_log_last_line_without_newline(yard):
    attempt_id = yard.start(["/usr/bin/printf", "no newline"])
    assert yard.wait_end(attempt_id)["log_bytes"] == 10
    assert yard.log(attempt_id) == b"no newline"


def test_log_binary_and_invalid_utf8(yard):
    attempt_id = yard.start(["/usr/bin/printf", r"\377\000\200"])
    yard.wait_end(attempt_id)
    assert yard.log(attempt_id) == b"\xff\x00\x80"


def test_stdout_and_stderr_in_order(yard):
    attempt_id = yard.start(["/bin/sh", "-c", "echo one; echo two >&2; echo three"])
    yard.wait_end(attempt_id)
    assert yard.log(attempt_id) == b"one\ntwo\nthree\n"


def test_log_bounded_by_holes(yard):
    """A flood is cut in the middle; the first MiB and the newest part stay, offsets too."""
    code = """
import os, time
block = b"".join(b"%015d\\n" % n for n in range(4096))
os.write(1, b"first line\\n")
for n in range(64 * 16):
    os.write(1, block)
os.write(1, b"last of the flood\\n")
while not os.path.exists(os.environ["GO_ON"]):
    time.sleep(0.05)
os.write(1, b"after the hole\\n")
"""
    go_on = f"{yard.data_dir}/go_on"
    attempt_id = yard.start_python(code, env={"GO_ON": go_on}, log_cap_bytes=16 * MIB)
    path = f"{yard.folder(attempt_id)}/out.log"
    hole = wait_for(lambda: finished(yard, attempt_id), "the hole", timeout=30)
    with open(go_on, "w"):
        pass
    end = yard.wait_end(attempt_id)
    info = os.stat(path)
    assert info.st_size == end["log_bytes"] == 11 + 64 * MIB + 18 + 15
    assert info.st_blocks * 512 <= 17 * MIB
    assert hole["start"] == MIB
    with open(path, "rb") as file:
        assert file.readline() == b"first line\n"
        file.seek(hole["end"])
        assert file.read(4096).strip(b"\0") != b""
        file.seek(-33, os.SEEK_END)
        assert file.read() == b"last of the flood\nafter the hole\n"


def finished(yard, attempt_id):
    """The newest hole, once the flood is over and was bounded."""
    holes = yard.journal(attempt_id).log_holes
    if not holes:
        return None
    size = os.stat(f"{yard.folder(attempt_id)}/out.log").st_size
    return holes[-1] if size >= 64 * MIB and holes[-1]["end"] > size - 9 * MIB else None
