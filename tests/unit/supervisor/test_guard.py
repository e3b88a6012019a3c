"""The guard of a client's local service: nothing it started outlives it, or the client."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.supervisor import guard
from yards import Truth, alive, until

GUARD = Path(guard.__file__)
# Children, one in a session of its own that ignores SIGTERM, and a daemon; all hold the FIFO.
TREE = """
exec 9>"$1"
(trap '' TERM; echo stubborn >&9; while :; do sleep 0.1; done) &
(trap 'echo told >&9' TERM; echo polite >&9; while :; do sleep 0.1; done) &
setsid sh -c 'trap "" TERM; echo session >&9; while :; do sleep 0.1; done' &
(setsid sh -c 'sleep 300 & echo daemon >&9' &)
echo main >&9
wait
sleep 300
"""


@pytest.fixture
def truth(tmp_path):
    made = Truth(tmp_path / "truth")
    yield made
    made.close()


@pytest.fixture
def guarded():
    """Starts a command under a guard of this process."""
    started = []

    def spawn(*argv, grace_s=0.3, client=None):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", GUARD, str(client or os.getpid()), str(grace_s), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield spawn
    for process in started:
        process.stdin.close()
        process.terminate()
        process.wait(60)
        process.stdout.close()


def begun(truth):
    def whole():
        assert truth.held()
        words = (b"stubborn", b"polite", b"session", b"daemon", b"main")
        return all(word in truth.data for word in words)

    until(whole, words="the tree did not begin")


@pytest.mark.parametrize("how", ["stdin", "SIGTERM", "SIGINT", "SIGHUP"])
def test_the_whole_tree_ends(guarded, truth, how):
    """R50"""
    keep = os.open(truth.path, os.O_WRONLY)  # until the tree holds it
    process = guarded("sh", "-c", TREE, "sh", truth.path)
    begun(truth)
    os.close(keep)
    if how == "stdin":
        process.stdin.close()
    else:
        process.send_signal(signal.Signals[how])
    assert process.wait(60) == 143
    assert not truth.held()


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGUSR1])
def test_a_second_signal_ends_the_grace(guarded, truth, second):
    keep = os.open(truth.path, os.O_WRONLY)
    process = guarded("sh", "-c", TREE, "sh", truth.path, grace_s=1000)
    begun(truth)
    os.close(keep)
    process.terminate()
    until(lambda: truth.held() and b"told" in truth.data, words="not told to end")
    assert process.poll() is None
    process.send_signal(second)
    process.wait(60)
    assert not truth.held()


def test_leftovers_of_a_command_that_ended_are_ended(guarded, truth):
    keep = os.open(truth.path, os.O_WRONLY)
    command = 'exec 9>"$1"; (setsid sh -c "trap \'\' TERM; sleep 300" &) ; exit 7'
    process = guarded("sh", "-c", command, "sh", truth.path)
    assert process.wait(60) == 7
    os.close(keep)
    assert not truth.held()


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -KILL $$", 137)])
def test_the_exit_code_is_the_commands(guarded, command, code):
    assert guarded("sh", "-c", command).wait(60) == code


def test_a_command_that_cannot_be_executed(guarded, capfd):
    assert guarded("/no/such/program").wait(60) == guard.CANNOT_EXECUTE
    assert "/no/such/program: No such file" in capfd.readouterr().err


def test_a_client_that_is_gone_gets_nothing_started(guarded, tmp_path):
    """R56"""
    gone = subprocess.Popen(["true"])
    gone.wait()
    process = guarded("touch", tmp_path / "made", client=gone.pid)
    assert process.wait(60) == guard.CANNOT_EXECUTE
    assert not (tmp_path / "made").exists()


def test_a_fork_of_the_killed_client_keeps_nothing_alive(truth):
    """R56: the fork holds the other end of the guard's stdin."""
    program = """
import os, subprocess, sys, time
guard = subprocess.Popen([sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), "0.2",
    "sh", "-c", 'exec 9>"$1"; echo main >&9; sleep 300', "sh", sys.argv[2]],
    stdin=subprocess.PIPE, start_new_session=True)
if os.fork() == 0:
    time.sleep(300)
print(guard.pid, flush=True)
time.sleep(300)
"""
    keep = os.open(truth.path, os.O_WRONLY)
    client = subprocess.Popen(
        [sys.executable, "-c", program, GUARD, truth.path],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        pid = int(client.stdout.readline())
        until(lambda: truth.held() and b"main" in truth.data, words="not begun")
        os.close(keep)
        client.kill()
        client.wait(60)
        until(lambda: not truth.held(), words="the service lives on")
        until(lambda: not alive(pid), words="the guard lives on")
    finally:
        os.killpg(client.pid, signal.SIGKILL)  # the fork
        client.stdout.close()


def test_the_command_does_not_read_our_stdin_and_begins_a_session(guarded):
    program = "import os, sys; print(os.getsid(0) == os.getpid(), repr(sys.stdin.read()))"
    process = guarded(sys.executable, "-c", program)
    assert process.stdout.read() == b"True ''\n"


def test_a_killed_guard_takes_its_command_with_it(guarded):
    process = guarded("sh", "-c", "echo $$; exec sleep 300")
    pid = int(process.stdout.readline())
    process.kill()
    until(lambda: not alive(pid), words="the command lives on")
