"""The log belongs to the job: killing whoever watches loses nothing, and its size is bounded."""

import os
import signal

import pytest
from keeper_yard import wait_for

MIB = 1 << 20


@pytest.mark.container
def test_log_survives_supervisor_kill9(yard):
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


@pytest.mark.container
def test_log_1gb_bounded_by_holes(yard):
    """A flood is cut in the middle; the first MiB and the newest part stay, offsets too."""
    code = """
import os, time
block = b"".join(b"%063d\\n" % n for n in range(1 << 14))
os.write(1, b"first line\\n")
for n in range(1024):
    os.write(1, block)
os.write(1, b"last of the flood\\n")
while not os.path.exists(os.environ["GO_ON"]):
    time.sleep(0.05)
os.write(1, b"after the hole\\n")
"""
    go_on = f"{yard.data_dir}/go_on"
    attempt_id = yard.start_python(code, env={"GO_ON": go_on}, log_cap_bytes=16 * MIB)
    path = f"{yard.folder(attempt_id)}/out.log"
    hole = wait_for(lambda: finished(yard, attempt_id), "the hole", timeout=90)
    with open(go_on, "w"):
        pass
    end = yard.wait_end(attempt_id)
    info = os.stat(path)
    assert info.st_size == end["log_bytes"] == 11 + 1024 * MIB + 18 + 15
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
    return holes[-1] if size >= 1024 * MIB and holes[-1]["end"] > size - 9 * MIB else None


TTY_LOOK = """
import os, sys
print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), flush=True)
print(*os.get_terminal_size(1), os.environ["TERM"], flush=True)
sys.stderr.write("to stderr\\n")
sys.stderr.flush()
try:
    os.close(os.open("/dev/tty", os.O_RDWR))
    print("a controlling terminal")
except OSError:
    print("nobody to ask for a password")
"""


def test_log_tty_mode_isatty(yard):
    """Output is a terminal of the usual size; nobody types; bytes arrive as they were written."""
    attempt_id = yard.start_python(TTY_LOOK, tty=True)
    end = yard.wait_end(attempt_id)
    lines = [b"False True True", b"80 24 xterm-256color", b"to stderr"]
    lines += [b"nobody to ask for a password", b""]
    assert yard.log(attempt_id) == b"\n".join(lines)
    assert (end["code"], end["log_bytes"]) == (0, len(yard.log(attempt_id)))


def test_log_tty_mode_size_from_environment(yard):
    sizes = {"COLUMNS": "132", "LINES": "50", "TERM": "dumb"}
    attempt_id = yard.start_python(TTY_LOOK, tty=True, env=sizes)
    yard.wait_end(attempt_id)
    assert yard.log(attempt_id).splitlines()[1] == b"132 50 dumb"


def test_log_tty_mode_loses_nothing(yard):
    """The job writes faster than a terminal holds, leaves a child that writes on, and ends."""
    code = """
import os
for n in range(200_000):
    os.write(1, b"%07d\\n" % n)
if os.fork() == 0:
    os.write(1, b"from the child\\n")
"""
    attempt_id = yard.start_python(code, tty=True, leftover_grace_s=60.0)
    end = yard.wait_end(attempt_id, timeout=100)
    written = yard.log(attempt_id)
    assert end["log_bytes"] == len(written) == 8 * 200_000 + len(b"from the child\n")
    assert written[: 8 * 200_000].split() == [b"%07d" % n for n in range(200_000)]


def test_log_tty_mode_bounded(yard):
    code = """
import os, time
block = b"".join(b"%015d\\n" % n for n in range(4096))
os.write(1, b"first line\\n")
for n in range(64 * 16):
    os.write(1, block)
while not os.path.exists(os.environ["GO_ON"]):
    time.sleep(0.05)
"""
    go_on = f"{yard.data_dir}/go_on"
    attempt_id = yard.start_python(code, tty=True, env={"GO_ON": go_on}, log_cap_bytes=16 * MIB)
    path = f"{yard.folder(attempt_id)}/out.log"
    wait_for(lambda: tty_flood_bounded(yard, attempt_id, path), "the hole", timeout=90)
    with open(go_on, "w"):
        pass
    assert yard.wait_end(attempt_id)["log_bytes"] == 11 + 64 * MIB
    assert os.stat(path).st_blocks * 512 <= 17 * MIB


def tty_flood_bounded(yard, attempt_id, path):
    holes = yard.journal(attempt_id).log_holes
    size = os.stat(path).st_size if holes else 0
    return size >= 64 * MIB and holes[-1]["end"] > size - 9 * MIB


def test_log_tty_mode_ends_with_its_supervisor(yard):
    """What was written before is there; stops and cancels are as usual."""
    attempt_id = yard.start(["/bin/sh", "-c", "echo one; echo two; sleep 600"], tty=True)
    wait_for(lambda: b"two" in yard.log(attempt_id), "the lines")
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["by"]) == ("supervisor_lost", "keeper")
    assert yard.log(attempt_id) == b"one\ntwo\n"
    attempt_id = yard.start(
        ["/bin/sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"],
        tty=True,
    )
    wait_for(lambda: b"up" in yard.log(attempt_id), "the job")
    yard.stop(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"]) == ("cancelled", 3)
    assert yard.log(attempt_id).endswith(b"bye\n")
