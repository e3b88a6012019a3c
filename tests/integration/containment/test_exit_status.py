"""Exit codes and signals are true or null, never invented (R42)."""

import errno
import os
import signal
import sys

import pytest


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_code_0_1_42_255(yard, code):
    attempt_id = yard.start(["/bin/sh", "-c", f"exit {code}"])
    end = yard.wait_end(attempt_id)
    assert (end["code"], end["signal"], end["cause"]) == (code, None, "exited")
    assert yard.hear(attempt_id, "ended")["exit"] == end
    assert yard.hear(attempt_id, "started")["started_at"] == end["started_at"]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_signal_segv_abrt_kill(yard, number):
    attempt_id = yard.start(["/bin/sh", "-c", f"kill -{int(number)} $$"])
    end = yard.wait_end(attempt_id)
    killed = number == signal.SIGKILL
    cause = "killed_externally" if killed else "crashed"
    assert (end["code"], end["signal"], end["cause"]) == (None, number, cause)
    assert end["killed_externally"] is killed


def test_code_137_from_shell_vs_signal(yard):
    by_shell = yard.wait_end(yard.start(["/bin/sh", "-c", "sh -c 'kill -9 $$'; exit $?"]))
    assert (by_shell["code"], by_shell["signal"]) == (137, None)


def test_exec_not_found(yard):
    end = yard.wait_end(yard.start(["no-such-program-anywhere"]))
    assert (end["cause"], end["code"], end["errno"]) == ("exec_failed", None, errno.ENOENT)
    assert end["path"] == "no-such-program-anywhere"
    assert end["started_at"] is None


def test_exec_not_executable(yard, tmp_path):
    program = tmp_path / "data"
    program.write_text("#!/bin/sh\n")
    end = yard.wait_end(yard.start([str(program)]))
    assert (end["cause"], end["errno"]) == ("exec_failed", errno.EACCES)


def test_exec_bad_interpreter(yard, tmp_path):
    program = tmp_path / "script"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    end = yard.wait_end(yard.start([str(program)]))
    assert (end["cause"], end["errno"]) == ("exec_failed", errno.ENOENT)
    assert "interpreter" in end["message"]


def test_cwd_missing(yard):
    end = yard.wait_end(yard.start(["/bin/true"], cwd="/no/such/place"))
    assert (end["cause"], end["code"], end["path"]) == ("cwd_missing", None, "/no/such/place")


def test_argv_too_long(yard):
    end = yard.wait_end(yard.start(["/bin/true", "x" * 3_000_000]))
    assert (end["cause"], end["errno"]) == ("exec_failed", errno.E2BIG)


def test_nul_byte_in_argv(yard):
    end = yard.wait_end(yard.start(["/bin/echo", "a\0b"]))
    assert (end["cause"], end["code"], end["errno"]) == ("exec_failed", None, None)


def test_make_dirs_are_there_first(yard, tmp_path):
    place = tmp_path / "new" / "deep"
    attempt_id = yard.start(["/bin/pwd"], cwd=str(place), make_dirs=[str(place)])
    assert yard.wait_end(attempt_id)["code"] == 0
    assert yard.log(attempt_id).decode().strip() == str(place)


def test_make_dirs_that_cannot_be_made(yard, tmp_path):
    (tmp_path / "file").write_text("")
    end = yard.wait_end(yard.start(["/bin/true"], make_dirs=[str(tmp_path / "file" / "x")]))
    assert (end["cause"], end["errno"]) == ("start_failed", errno.ENOTDIR)


def test_rusage_recorded(yard):
    code = "x = bytearray(60 << 20)\nfor i in range(1 << 21): pass"
    end = yard.wait_end(yard.start_python(code))
    assert end["rusage"]["maxrss_kb"] > 60 << 10
    assert end["rusage"]["utime_s"] > 0


def test_environment_is_exactly_the_specs(yard):
    attempt_id = yard.start(["/usr/bin/env", "-0"], env={"ODD": "a\udcff", "X": "ü\n"})
    yard.wait_end(attempt_id)
    environment = yard.specs[attempt_id]["env"].items()
    expected = {os.fsencode(f"{name}={value}") for name, value in environment}
    assert set(yard.log(attempt_id).split(b"\0")) - {b""} == expected


def test_program_is_found_by_the_jobs_own_path(yard, tmp_path):
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\nexit 12\n")
    program.chmod(0o755)
    end = yard.wait_end(yard.start(["mine"], env={"PATH": f"/usr/bin:{tmp_path}"}))
    assert end["code"] == 12


def test_what_a_job_inherits(yard):
    """No descriptor but 0, 1, 2; no blocked or ignored signal; its own session; its parent the
    supervisor; a higher chance than the supervisor to be chosen when memory runs out."""
    code = """
import os
# One descriptor more is the listing's own.
print("fds", sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
for line in open("/proc/self/status"):
    if line.startswith(("SigBlk", "SigIgn", "NoNewPrivs")):
        print(*line.split())
print("session", os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())
print("oom", open("/proc/self/oom_score_adj").read().strip())
print("stdin", os.readlink("/proc/self/fd/0"))
"""
    # Through a shell: Python itself would ignore SIGPIPE.
    shell = "grep -E 'SigIgn|SigBlk' /proc/self/status; exec \"$@\""
    attempt_id = yard.start(["/bin/sh", "-c", shell, "sh", sys.executable, "-I", "-S", "-c", code])
    yard.wait_end(attempt_id)
    out = yard.log(attempt_id).decode()
    blocked, ignored = (int(line.split()[1], 16) for line in out.splitlines()[:2])
    assert blocked == 0
    # Above 31 are signals of the C library that no program can set.
    assert ignored & 0x7FFFFFFF == 0
    assert "fds [0, 1, 2]\n" in out
    assert "NoNewPrivs: 1" in out
    assert "session True True" in out
    assert "oom 500" in out
    assert "stdin /dev/null" in out


def test_no_new_privs_can_be_left_off(yard):
    attempt_id = yard.start(["/bin/grep", "NoNewPrivs", "/proc/self/status"], no_new_privs=False)
    yard.wait_end(attempt_id)
    assert yard.log(attempt_id).split() == [b"NoNewPrivs:", b"0"]


def test_one_supervisor_runs_many_attempts_in_turn(yard):
    """A supervisor that is provably empty takes the next attempt, whatever the last one did."""
    pids = set()
    for number in range(12):
        kind = number % 4
        if kind == 0:
            end = yard.wait_end(yard.start(["/bin/sh", "-c", f"exit {number}"]))
            assert end["code"] == number
        elif kind == 1:
            end = yard.wait_end(yard.start(["/bin/sh", "-c", "setsid sleep 600 & exit 3"]))
            assert end["code"] == 3
        elif kind == 2:
            attempt_id = yard.start(["/bin/sleep", "600"])
            yard.wait_job(attempt_id)
            yard.stop(attempt_id)
            assert yard.wait_end(attempt_id)["cause"] == "cancelled"
        else:
            assert yard.wait_end(yard.start(["/no/such"]))["cause"] == "exec_failed"
        pids.add(yard.journal(f"job-{yard.name}t{number + 1}.1").supervisor["pid"])
    assert len(pids) < 12
