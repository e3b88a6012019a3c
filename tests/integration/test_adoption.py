"""A server that was killed is started again: what ran goes on, what ended is told truly."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from crowd import Crowd, seconds

from runyard.supervisor import journal
from yards import Truth, keeper_pid, kill9, until


@pytest.fixture
def crowd(make_yard, tmp_path):
    crowd = Crowd(make_yard(max_concurrent=60).start(), tmp_path)
    crowd.wait_until_up()
    yield crowd
    crowd.close()


def assert_short_ones_told_truly(crowd, restarted_at):
    """Exit codes and end times are the jobs' own."""
    for code, ref in enumerate(crowd.short):
        job = crowd.yard.wait(ref, "failed" if code else "completed")
        [attempt] = crowd.yard.attempts(ref)
        assert (attempt["exit_code"], attempt["signal"]) == (code, None)
        ended = seconds(attempt["ended_at"])
        # A supervisor may see the end a moment after it; a server needs far longer to be up.
        assert ended < restarted_at + 0.3
        assert abs(ended - crowd.end_time(code)) < 2
        assert job["completed_at"] == attempt["ended_at"]


def assert_all_can_be_cancelled(crowd, refs):
    asked = crowd.yard.api("POST", "/jobs/cancel?wait=30", {"job_ids": refs}, timeout=60)
    assert sorted(asked.body["cancelled"]) == sorted(refs), asked.body
    assert not crowd.kept_truth.held(), "a process of a cancelled job lives"
    for ref in refs:
        [attempt] = crowd.yard.attempts(ref)
        assert attempt["end"] == "cancelled"
        assert crowd.yard.ask(f"/jobs/{ref}/receipt")["proof"] == "echild"


def test_server_kill9_50_jobs_adopted(crowd):
    """R41, R42, R56; server_kill9_finished_meanwhile_codes_right,
    end_time_is_jobs_not_restart_time: nothing is started twice, nothing survives its cancel."""
    yard = crowd.yard
    started = {ref: yard.job(ref)["started_at"] for ref in crowd.long}
    yard.kill9()
    crowd.let_the_short_ones_end()
    restarted_at = time.time()
    yard.start()
    assert_short_ones_told_truly(crowd, restarted_at)
    assert crowd.count("running") == len(crowd.long)
    for ref in crowd.long:
        [attempt] = yard.attempts(ref)
        assert attempt["status"] == "running"
        assert attempt["started_at"] == started[ref]
    assert crowd.kept_truth.held()
    assert crowd.doomed_truth.held()
    assert_all_can_be_cancelled(crowd, crowd.long)
    assert not crowd.doomed_truth.held()


def test_shim_kill9_20_at_once_keeper_records_all(crowd):
    """R41, R42: the server and 20 supervisors are killed; the keeper ends their trees at once."""
    yard = crowd.yard
    yard.kill9()
    crowd.kill_supervisors(crowd.doomed)
    until(lambda: not crowd.doomed_truth.held(), 15, "the keeper ends what they left")
    until(lambda: crowd.settled(crowd.doomed), 15, "and records it")
    crowd.let_the_short_ones_end()
    restarted_at = time.time()
    yard.start()
    assert_short_ones_told_truly(crowd, restarted_at)
    assert_lost(crowd, by="keeper", before=restarted_at)
    assert crowd.count("running") == len(crowd.kept)
    assert_all_can_be_cancelled(crowd, crowd.kept)


def test_keeper_and_shims_and_server_kill9_tag_sweep(crowd):
    """R41, R42, R43: nobody is left to end the trees but the next server, also those daemons
    that have no environment to be known by."""
    yard = crowd.yard
    yard.kill9()
    os.kill(keeper_pid(yard.data), signal.SIGKILL)
    crowd.kill_supervisors(crowd.doomed)
    crowd.let_the_short_ones_end()
    assert crowd.doomed_truth.held(), "the daemons should have outlived their supervisors"
    restarted_at = time.time()
    yard.start()
    assert not crowd.doomed_truth.held(), "a leftover outlived the sweep of the new server"
    assert_short_ones_told_truly(crowd, restarted_at)
    assert_lost(crowd, by="reconciler")
    assert crowd.count("running") == len(crowd.kept)
    assert_all_can_be_cancelled(crowd, crowd.kept)
    done = yard.submit(["true"])
    yard.wait(done, "completed")


def assert_lost(crowd, by, before=None):
    """No exit code is invented for them."""
    for ref in crowd.doomed:
        job = crowd.yard.wait(ref, "failed")
        assert job["reason"]["code"] == "supervisor_lost", job["reason"]
        [attempt] = crowd.yard.attempts(ref)
        assert attempt["end"] == "lost"
        assert attempt["exit_code"] is None
        receipt = crowd.yard.ask(f"/jobs/{ref}/receipt")
        assert (receipt["by"], receipt["proof"]) == (by, "scan")
        assert before is None or seconds(attempt["ended_at"]) < before


def test_server_restart_twice_fast(make_yard, tmp_path):
    """R42: killed again while it adopts."""
    yard = make_yard(max_concurrent=20).start()
    truth = Truth(tmp_path / "truth")
    refs = [
        yard.submit(["sh", "-c", f"exec 9>{truth.path}; echo up >&9; exec sleep 600"], grace_s=1)
        for _ in range(10)
    ]
    until(lambda: truth.held() and truth.data.count(b"\n") == len(refs))
    yard.kill9()
    for pause in (0.3, 1.0):
        yard.spawn()
        time.sleep(pause)
        yard.kill9()
    yard.start()
    for ref in refs:
        yard.wait(ref, "running")
        assert len(yard.attempts(ref)) == 1
    assert len(truth.data.splitlines()) == len(refs)
    assert truth.held()
    yard.api("POST", "/jobs/cancel?wait=20", {"job_ids": refs}, timeout=60)
    assert not truth.held()
    truth.close()


def test_cancelled_then_killed_at_once(make_yard, tmp_path):
    """R44: a cancel that was answered is kept, whatever happens to the server then."""
    yard = make_yard(max_concurrent=20).start()
    truth = Truth(tmp_path / "truth")
    stubborn = f"trap '' TERM; exec 9>{truth.path}; echo up >&9; exec sleep 600"
    refs = [yard.submit(["sh", "-c", stubborn], grace_s=3) for _ in range(8)]
    until(lambda: truth.held() and truth.data.count(b"\n") == len(refs))
    asked = yard.api("POST", "/jobs/cancel", {"job_ids": refs})
    yard.kill9()
    assert sorted(asked.body["cancelling"]) == sorted(refs)
    yard.start()
    for ref in refs:
        yard.wait(ref, "cancelled")
        assert yard.job(ref)["reason"]["code"] == "user_cancelled"
    assert not truth.held()
    truth.close()


def test_server_kill9_between_the_cancel_and_its_stop_file(make_yard, tmp_path):
    """R44; server_kill9_between_cancel_file_and_socket: the cancel is in the database, and
    nothing of it reached the attempt. The next server passes it on."""
    yard = make_yard().start()
    truth = Truth(tmp_path / "truth")
    ref = yard.submit(["sh", "-c", f"exec 9>{truth.path}; echo up >&9; exec sleep 600"], grace_s=1)
    until(lambda: truth.held() and truth.data)
    yard.wait(ref, "running")
    # The stop file is written under this name first; a directory there makes that fail.
    in_the_way = yard.data / "attempts" / f"{ref}.1" / f"stop.{yard.process.pid}.tmp"
    in_the_way.mkdir()
    assert yard.api("POST", f"/jobs/{ref}/cancel").body["status"] == "cancelling"
    yard.kill9()
    in_the_way.rmdir()
    assert truth.held()
    assert not (yard.data / "attempts" / f"{ref}.1" / "stop").exists()
    yard.start()
    yard.wait(ref, "cancelled")
    assert not truth.held()
    assert "repeating a stop request" in (yard.data / "logs" / "server.log").read_text()
    truth.close()


@pytest.mark.parametrize("step", ["placed", "spec_written"])
def test_server_kill9_between_start_steps(make_yard, tmp_path, step):
    """R42, R56; server_kill9_between_each_start_step: placed, but never given to the keeper. It
    is told as never started, costs no retry, and runs once."""
    yard = make_yard().start()
    keeper = keeper_pid(yard.data)
    os.kill(keeper, signal.SIGSTOP)  # what the server says stays unread, and dies with the keeper
    ran = tmp_path / "ran"
    ref = yard.submit(["sh", "-c", f"echo ran >>{ran}"])
    folder = yard.data / "attempts" / f"{ref}.1"
    until(lambda: (folder / "journal").exists() and journal.read(str(folder)).spec)
    yard.kill9()
    os.kill(keeper, signal.SIGKILL)
    if step == "placed":
        shutil.rmtree(folder)
    yard.start()
    done = yard.wait(ref, "completed")
    assert ran.read_text() == "ran\n"
    assert (done["retry_count"], done["charged"]) == (1, 0)
    first, second = yard.attempts(ref)
    assert (first["end"], first["exit_code"], first["started_at"]) == ("never_started", None, None)
    assert (second["end"], second["exit_code"]) == ("completed", 0)


def test_keeper_kill9_jobs_continue(make_yard, tmp_path):
    """keeper_restarted_new_jobs_supervised: the server lives, its keeper is replaced, and a
    supervisor without a keeper still records the end."""
    yard = make_yard().start()
    go = tmp_path / "go"
    old = yard.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 7"])
    yard.wait(old, "running")
    os.kill(keeper_pid(yard.data), signal.SIGKILL)
    new = yard.submit(["true"])
    yard.wait(new, "completed")
    go.touch()
    yard.wait(old, "failed")
    assert yard.attempts(old)[0]["exit_code"] == 7


def test_shim_kill9_while_the_server_lives(make_yard, tmp_path):
    """R41: what it left is ended, and the next attempt starts by itself."""
    yard = make_yard().start()
    truth = Truth(tmp_path / "truth")
    tree = f"exec 9>{truth.path}; setsid sleep 600 & echo up >&9; exec sleep 600"
    ref = yard.submit(["sh", "-c", tree], max_retries=1)
    until(lambda: truth.held() and truth.data)
    yard.wait(ref, "running")
    kill9(journal.read(str(yard.data / "attempts" / f"{ref}.1")).supervisor)
    until(lambda: len(yard.attempts(ref)) == 2, 20)
    yard.wait(ref, "running")
    first, second = yard.attempts(ref)
    assert (first["end"], first["exit_code"]) == ("lost", None)
    assert second["status"] == "running"
    assert yard.job(ref)["charged"] == 0, "the trouble was ours, not the job's"
    yard.cancel(ref)
    assert not truth.held()
    truth.close()


def test_an_innocent_that_looks_like_a_job_is_not_touched(make_yard):
    """R43; marker_in_strangers_argv_not_killed: a process that only names the job in its command
    line and holds the same file open is nobody's business."""
    yard = make_yard().start()
    ref = yard.submit(["sleep", "600"], grace_s=1)
    yard.wait(ref, "running")
    attempt = f"{ref}.1"
    wait_here = "import sys, time; time.sleep(600)"
    words = [f"RUNYARD_ATTEMPT_ID={attempt}", ref, attempt, str(yard.data)]
    stranger = subprocess.Popen([sys.executable, "-S", "-c", wait_here, *words])
    older_marker = subprocess.Popen(
        ["sleep", "600"], env={"RUNYARD_ATTEMPT_ID": f"{attempt}0", "PATH": os.environ["PATH"]}
    )
    try:
        yard.kill9()
        os.kill(keeper_pid(yard.data), signal.SIGKILL)
        kill9(journal.read(str(yard.data / "attempts" / attempt)).supervisor)
        yard.start()
        yard.wait(ref, "failed")
        assert stranger.poll() is None
        assert older_marker.poll() is None
    finally:
        for process in (stranger, older_marker):
            process.kill()
            process.wait()


def test_keeper_killed_with_a_hand_over_unread(make_yard, tmp_path):
    """keeper_killed_mid_fork: an attempt that was handed to a keeper which died is missed soon,
    not only by the reconcile of every 30 s."""
    yard = make_yard().start()
    keeper = keeper_pid(yard.data)
    os.kill(keeper, signal.SIGSTOP)
    ran = tmp_path / "ran"
    ref = yard.submit(["sh", "-c", f"echo ran >>{ran}"])
    folder = yard.data / "attempts" / f"{ref}.1"
    until(lambda: (folder / "journal").exists() and journal.read(str(folder)).spec)
    os.kill(keeper, signal.SIGKILL)
    yard.wait(ref, "completed", seconds=15)
    assert ran.read_text() == "ran\n"
    assert [attempt["end"] for attempt in yard.attempts(ref)] == ["never_started", "completed"]
