"""Asking a job to end: who is told, how long it may take, what is recorded (R41)."""

import json
import os
import signal
import sys
import time

import pytest
from keeper_yard import wait_for

from runyard.supervisor import protocol

HANDLER = """
import os, signal, sys, time
def on_term(*_):
    {on_term}
signal.signal(signal.SIGTERM, on_term)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def start_handler(yard, on_term, **fields):
    attempt_id = yard.start_python(HANDLER.format(on_term=on_term), **fields)
    wait_for(lambda: b"ready" in yard.log(attempt_id), "the handler")
    return attempt_id


def start_limited(yard, on_term, **fields):
    """With a time limit as short as this machine allows: what has not got ready within its limit
    is ended before it could hear anything."""
    for limit in (0.3, 3.0, 30.0):
        code = HANDLER.format(on_term=on_term)
        attempt_id = yard.start_python(code, timeout_s=limit, **fields)
        wait_for(
            lambda a=attempt_id: b"ready" in yard.log(a) or yard.journal(a).exit, "the handler"
        )
        if b"ready" in yard.log(attempt_id):
            return attempt_id, limit
    raise AssertionError("not ready within 30 s")


def test_term_reaches_python_behind_shell(yard):
    code = HANDLER.format(on_term="print('told', flush=True); os._exit(3)")
    quoted = f'{sys.executable} -I -S -c "$CODE"; exit $?'
    # The shell ends at once; what it leaves has to have the time to say so.
    attempt_id = yard.start(["/bin/sh", "-c", quoted], env={"CODE": code}, leftover_grace_s=60.0)
    wait_for(lambda: b"ready" in yard.log(attempt_id), "python")
    yard.stop(attempt_id)
    yard.wait_end(attempt_id)
    assert b"told" in yard.log(attempt_id)


def test_term_mode_main_only(yard):
    """The shell alone is told: its child ends as a leftover."""
    script = "trap 'echo main; exit 4' TERM; (trap 'echo child' TERM; sleep 600) & "
    attempt_id = yard.start(
        ["/bin/sh", "-c", f"{script} echo ready; wait"], term_mode="main", leftover_grace_s=0.0
    )
    wait_for(lambda: b"ready" in yard.log(attempt_id), "the shell")
    yard.stop(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["code"], end["cause"]) == (4, "cancelled")
    assert end["signals"][0]["target"] == "main"
    assert b"main" in yard.log(attempt_id)


def test_term_mode_all_reaches_other_sessions(yard):
    code = HANDLER.format(on_term="print('session told', flush=True); os._exit(0)")
    command = f"setsid {sys.executable} -I -S -c \"$CODE\" & trap 'exit 6' TERM; wait"
    attempt_id = yard.start(
        ["/bin/sh", "-c", command], env={"CODE": code}, term_mode="all", leftover_grace_s=60.0
    )
    wait_for(lambda: b"ready" in yard.log(attempt_id), "the other session")
    yard.stop(attempt_id)
    end = yard.wait_end(attempt_id)
    assert b"session told" in yard.log(attempt_id)
    assert end["signals"][0]["target"] == "all"


def test_grace_respected_checkpoint_written(yard, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    attempt_id = start_handler(
        yard,
        f"time.sleep(0.5); open({str(checkpoint)!r}, 'w').write('saved'); os._exit(0)",
    )
    yard.stop(attempt_id, grace_s=60)
    end = yard.wait_end(attempt_id)
    assert checkpoint.read_text() == "saved"
    assert (end["code"], end["cause"]) == (0, "cancelled")
    assert [s["signal"] for s in end["signals"]] == ["TERM"]
    assert 0.5 <= end["seconds"] < 60


def test_stop_file_is_there_before_the_signal(yard):
    attempt_id = start_handler(
        yard, "print(os.path.exists(os.environ['RUNYARD_STOP_FILE']), flush=True); os._exit(0)"
    )
    yard.stop(attempt_id, cause="shutdown", grace_s=60)
    yard.wait_end(attempt_id)
    assert yard.log(attempt_id).endswith(b"True\n")
    with open(f"{yard.folder(attempt_id)}/stop-requested") as file:
        assert json.load(file)["cause"] == "shutdown"


def test_exit_code_during_grace_kept(yard):
    attempt_id = start_handler(yard, "os._exit(17)")
    yard.stop(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["code"], end["signal"], end["cause"]) == (17, None, "cancelled")


def test_grace_ends_in_kill(yard):
    attempt_id = start_handler(yard, "pass")
    began = time.monotonic()
    yard.stop(attempt_id, grace_s=0.5)
    end = yard.wait_end(attempt_id)
    assert time.monotonic() - began >= 0.5
    assert (end["signal"], end["cause"]) == (signal.SIGKILL, "cancelled")
    assert [s["signal"] for s in end["signals"]] == ["TERM", "KILL"]
    assert not end["killed_externally"]


def test_second_cancel_skips_grace(yard):
    attempt_id = start_handler(yard, "print('told', flush=True)")
    yard.stop(attempt_id, seq=1, grace_s=300)
    wait_for(lambda: b"told" in yard.log(attempt_id), "the first request")
    yard.stop(attempt_id, seq=2, grace_s=0)
    end = yard.wait_end(attempt_id)
    assert end["signal"] == signal.SIGKILL
    assert end["stop"]["seq"] == 2


def test_later_request_cannot_lengthen_the_grace(yard):
    attempt_id = start_handler(yard, "print('told', flush=True)")
    yard.stop(attempt_id, seq=1, grace_s=1)
    wait_for(lambda: b"told" in yard.log(attempt_id), "the first request")
    yard.stop(attempt_id, seq=2, grace_s=300)
    yard.wait_end(attempt_id)


def test_force_kill_sends_no_term(yard):
    attempt_id = start_handler(yard, "print('told', flush=True)")
    yard.stop(attempt_id, grace_s=0)
    end = yard.wait_end(attempt_id)
    assert b"told" not in yard.log(attempt_id)
    assert [s["signal"] for s in end["signals"]] == ["KILL"]


def test_cancel_before_start(yard, tmp_path):
    ran = tmp_path / "ran"
    attempt_id = yard.prepare(["/usr/bin/touch", str(ran)])
    yard.stop(attempt_id)
    yard.keeper.run(attempt_id)
    end = yard.wait_end(attempt_id)
    assert end["cause"] == "cancelled_before_start"
    assert end["code"] is None
    assert end["stop"]["cause"] == "user"
    assert not ran.exists()


def test_cancel_during_exec(yard):
    """Requests at every moment of the start: none is lost, each attempt ends once."""
    for _ in range(20):
        attempt_id = yard.prepare(["/bin/sleep", "600"])
        yard.keeper.run(attempt_id)
        yard.stop(attempt_id, grace_s=0.2)
        end = yard.wait_end(attempt_id)
        assert end["cause"] in ("cancelled", "cancelled_before_start")


def test_cancel_after_end_is_noop(yard):
    attempt_id = yard.start(["/bin/sh", "-c", "exit 5"])
    end = yard.wait_end(attempt_id)
    assert yard.stop(attempt_id) is False
    assert yard.journal(attempt_id).exit == end


def test_server_kill9_between_cancel_file_and_socket(yard):
    """The request is on disk and nobody was nudged: it is found at the heartbeat."""
    attempt_id = yard.start(["/bin/sleep", "600"])
    yard.wait_job(attempt_id)
    yard.stop(attempt_id, nudge=False)
    assert yard.wait_end(attempt_id)["cause"] == "cancelled"


def test_timeout_equals_cancel_with_cause(yard):
    attempt_id, limit = start_limited(yard, "os._exit(9)")
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"], end["limit_s"]) == ("timeout", 9, limit)
    assert end["stop"]["requested_by"] == "supervisor"


def test_a_persons_cancel_overrides_a_timeout(yard):
    attempt_id, _ = start_limited(yard, "print('told', flush=True)", grace_s=300)
    wait_for(lambda: b"told" in yard.log(attempt_id), "the timeout")
    yard.stop(attempt_id, seq=1, grace_s=0)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["stop"]["cause"]) == ("cancelled", "user")


def test_supervisor_sigterm_means_cancel(yard):
    attempt_id = start_handler(yard, "os._exit(8)")
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGTERM)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"]) == ("cancelled", 8)
    assert end["stop"]["cause"] == "supervisor_term"


def test_supervisor_term_twice(yard):
    attempt_id = start_handler(yard, "print('told', flush=True)", grace_s=300)
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGTERM)
    wait_for(lambda: b"told" in yard.log(attempt_id), "the first")
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGTERM)
    assert yard.wait_end(attempt_id)["signal"] == signal.SIGKILL


LAUNCHER = """
import os, signal, subprocess, sys, time
patience = float(sys.argv[1])
worker = "import signal,sys,time; signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5),"
worker += " print('worker saved', flush=True), sys.exit(0))); print('up', flush=True);"
worker += " time.sleep(600)"
stubborn = "import signal,time; signal.signal(15, signal.SIG_IGN); print('up', flush=True);"
stubborn += " time.sleep(600)"
started = [sys.executable, "-I", "-S", "-c"]
workers = [
    subprocess.Popen([*started, code], start_new_session=True)
    for code in (worker, worker, stubborn)
]
def forward(*_):
    for w in workers:
        w.terminate()
    deadline = time.monotonic() + patience
    *good, stubborn = workers
    for w in good:
        w.wait()
    try:
        stubborn.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        print("launcher kills", flush=True)
        stubborn.kill()
        stubborn.wait()
    sys.exit(1)
signal.signal(signal.SIGTERM, forward)
print("up", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize("patience", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_torchrun_style_forwarding_30s(yard, patience):
    """A launcher that forwards TERM to workers in their own sessions, and after 30 s kills them
    itself: within the default grace all of that is its own doing."""
    attempt_id = yard.start_python(LAUNCHER, str(patience), term_mode="main")
    wait_for(lambda: yard.log(attempt_id).count(b"up") == 4, "the launcher and its workers")
    yard.stop(attempt_id, grace_s=protocol.DEFAULT_GRACE_S)
    end = yard.wait_end(attempt_id, timeout=60)
    assert yard.log(attempt_id).count(b"worker saved") == 2
    assert b"launcher kills" in yard.log(attempt_id)
    assert (end["code"], end["cause"]) == (1, "cancelled")
    assert [s["signal"] for s in end["signals"]] == ["TERM"]
    assert patience <= end["seconds"] < protocol.DEFAULT_GRACE_S


@pytest.mark.parametrize("grace", [0.0, 60.0])
def test_leftovers_have_their_own_grace(yard, grace):
    """Main ends at once; its child needs a moment to save."""
    code = """
import os, signal, time
told, tell = os.pipe()
if os.fork():
    os.read(told, 1); os._exit(0)
def save(*_):
    time.sleep(0.3); print("saved", flush=True); os._exit(0)
signal.signal(signal.SIGTERM, save)
os.write(tell, b"r")
while True:
    time.sleep(0.05)
"""
    attempt_id = yard.start_python(code, leftover_grace_s=grace)
    end = yard.wait_end(attempt_id)
    assert end["code"] == 0
    assert (b"saved" in yard.log(attempt_id)) is (grace > 0)
