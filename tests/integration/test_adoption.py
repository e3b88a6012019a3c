"""A server that was killed is started again: what ran goes on, what ended is told truly."""

import contextlib
import fcntl
import http.client
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from crowd import Crowd, seconds

import runyard
from runyard.supervisor import journal, keeper_client, process_table
from yards import Truth, alive, keeper_pid, kill9, stat, until


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
        # Its supervisor saw the end, maybe a while after it, and always before the new server.
        assert crowd.end_time(code) - 0.1 < seconds(attempt["ended_at"]) < restarted_at
        assert job["completed_at"] == attempt["ended_at"]


def assert_all_can_be_cancelled(crowd, refs):
    asked = crowd.yard.api("POST", "/jobs/cancel?wait=60", {"job_ids": refs}, timeout=90)
    assert sorted(asked.body["cancelled"]) == sorted(refs), asked.body
    assert not crowd.kept_truth.held(), "a process of a cancelled job lives"
    for ref in refs:
        [attempt] = crowd.yard.attempts(ref)
        assert attempt["end"] == "cancelled"
        assert crowd.yard.ask(f"/jobs/{ref}/receipt")["proof"] == "echild"


@pytest.mark.container
def test_server_kill9_50_jobs_adopted(crowd):
    """R41, R42, R56: nothing is started twice, nothing survives its cancel."""
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


@pytest.mark.container
def test_server_kill9_finished_meanwhile_codes_right(make_yard, tmp_path):
    """R42: fifteen jobs end with fifteen codes while there is no server."""
    crowd = Crowd(make_yard(max_concurrent=60).start(), tmp_path, only_short=True)
    crowd.wait_until_up()
    crowd.yard.kill9()
    crowd.let_the_short_ones_end()
    restarted_at = time.time()
    crowd.yard.start()
    assert_short_ones_told_truly(crowd, restarted_at)
    crowd.close()


def test_end_time_is_jobs_not_restart_time(make_yard, tmp_path):
    """R42: the server comes back long after the job ended."""
    yard = make_yard().start()
    go, ended = tmp_path / "go", tmp_path / "ended"
    waits = f"while [ ! -e {go} ]; do sleep 0.05; done; date +%s.%N >{ended}; exit 7"
    ref = yard.submit(["sh", "-c", waits])
    yard.wait(ref, "running")
    yard.kill9()
    go.touch()
    until(lambda: journal.read(str(yard.data / "attempts" / f"{ref}.1")).exit, words="its end")
    restarted_at = time.time()
    yard.start()
    yard.wait(ref, "failed")
    [attempt] = yard.attempts(ref)
    assert attempt["exit_code"] == 7
    assert float(ended.read_text()) - 0.1 < seconds(attempt["ended_at"]) < restarted_at


def test_supervisor_kill9_20_at_once_keeper_records_all(crowd):
    """R41, R42: the server and 20 supervisors are killed; the keeper ends their trees at once."""
    yard = crowd.yard
    yard.kill9()
    crowd.kill_supervisors(crowd.doomed)
    until(lambda: not crowd.doomed_truth.held(), words="the keeper ends what they left")
    until(lambda: crowd.settled(crowd.doomed), words="and records it")
    crowd.let_the_short_ones_end()
    restarted_at = time.time()
    yard.start()
    assert_short_ones_told_truly(crowd, restarted_at)
    assert_lost(crowd, by="keeper", before=restarted_at)
    assert crowd.count("running") == len(crowd.kept)
    assert_all_can_be_cancelled(crowd, crowd.kept)


@pytest.mark.container
def test_keeper_and_supervisors_and_server_kill9_tag_sweep(crowd):
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
    assert_short_ones_told_truly(crowd, restarted_at)
    assert_lost(crowd, by="reconciler")
    assert not crowd.doomed_truth.held(), "a leftover outlived the sweep of the new server"
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
    yard.api("POST", "/jobs/cancel?wait=60", {"job_ids": refs}, timeout=90)
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
    assert sorted(asked.body["cancelling"] + asked.body["cancelled"]) == sorted(refs)
    yard.start()
    for ref in refs:
        yard.wait(ref, "cancelled")
        assert yard.job(ref)["reason"]["code"] == "user_cancelled"
    assert not truth.held()
    truth.close()


def test_server_kill9_between_the_cancel_and_its_stop_file(make_yard, tmp_path):
    """R44: the cancel is in the database, and nothing of it reached the attempt. The next server
    passes it on."""
    yard = make_yard().start()
    truth = Truth(tmp_path / "truth")
    ref = yard.submit(["sh", "-c", f"exec 9>{truth.path}; echo up >&9; exec sleep 600"], grace_s=1)
    until(lambda: truth.held() and truth.data)
    yard.wait(ref, "running")
    # The stop file is written under a lock of the folder: whoever has it keeps the server waiting.
    folder = os.open(yard.data / "attempts" / f"{ref}.1", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    asked = threading.Thread(target=_ask_and_be_cut_off, args=(yard, ref))
    asked.start()
    yard.wait(ref, "cancelling")
    yard.kill9()
    asked.join()
    os.close(folder)
    assert truth.held()
    assert not (yard.data / "attempts" / f"{ref}.1" / "stop").exists()
    yard.start()
    yard.wait(ref, "cancelled")
    assert not truth.held()
    assert "repeating a stop request" in (yard.data / "logs" / "server.log").read_text()
    truth.close()


def _ask_and_be_cut_off(yard, ref):
    with contextlib.suppress(OSError, http.client.HTTPException):
        yard.api("POST", f"/jobs/{ref}/cancel")


@pytest.mark.parametrize("step", ["placed", "spec_written"])
def test_server_kill9_between_each_start_step(make_yard, tmp_path, step):
    """R42, R56: placed, but never given to the keeper. It is told as never started, costs no
    retry, and runs once."""
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


@pytest.mark.parametrize("restart", ["before_it_starts", "after_its_end"])
def test_server_kill9_between_each_start_step_handed_over(make_yard, tmp_path, restart):
    """R42: the keeper has it, its supervisor has not begun: it runs once, server or not."""
    yard = make_yard().start()
    keeper = keeper_pid(yard.data)
    supervisors = process_table.children(keeper)
    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)
    ran = tmp_path / "ran"
    ref = yard.submit(["sh", "-c", f"echo ran >>{ran}; exit 3"])
    client = keeper_client.KeeperClient(str(yard.data))
    until(lambda: f"{ref}.1" in client.list()["attempts"])
    client.close()
    yard.kill9()
    if restart == "before_it_starts":
        yard.start()
    for pid in supervisors:
        os.kill(pid, signal.SIGCONT)
    folder = str(yard.data / "attempts" / f"{ref}.1")
    until(lambda: journal.read(folder).exit, words="its end")
    if restart == "after_its_end":
        yard.start()
    yard.wait(ref, "failed", "completed")
    attempts = yard.attempts(ref)
    assert [a["end"] for a in attempts if a["end"] != "never_started"] == ["failed"]
    assert attempts[-1]["exit_code"] == 3
    assert ran.read_text() == "ran\n"


def test_server_kill9_during_kill_loop(make_yard, tmp_path):
    """R41, R44: forced, and the server dies while the trees are being killed. A process that
    calls itself a resource tracker is spared for two seconds, so that there is a while."""
    yard = make_yard(max_concurrent=20).start()
    mains, trackers = Truth(tmp_path / "mains"), Truth(tmp_path / "trackers")
    name = "multiprocessing.resource_tracker"
    tree = (
        f"exec 9>{trackers.path}; setsid sh -c 'echo up >&9; sleep 600; :' {name} & "
        f"exec 9>{mains.path}; exec sleep 600"
    )
    refs = [yard.submit(["sh", "-c", tree], grace_s=30) for _ in range(5)]
    until(lambda: trackers.held() and trackers.data.count(b"up") == len(refs))
    for ref in refs:
        yard.wait(ref, "running")
    yard.api("POST", "/jobs/cancel", {"job_ids": refs, "force": True})
    until(lambda: not mains.held(), words="the main processes are killed", every=0.002)
    yard.kill9()
    until(lambda: not trackers.held(), words="the rest is killed without a server")
    yard.start()
    for ref in refs:
        yard.wait(ref, "cancelled")
        receipt = yard.ask(f"/jobs/{ref}/receipt")
        assert (receipt["by"], receipt["proof"]) == ("supervisor", "echild")
        assert receipt["signals"][-1]["signal"] == "KILL"
    mains.close()
    trackers.close()


def test_server_upgrade_old_supervisor_protocol(make_yard, tmp_path):
    """R54: jobs under the supervisors of an older release go on under a newer server; it reads
    what they write, cancels them, and starts new jobs under a keeper of its own."""
    old = tmp_path / "older" / "runyard"
    shutil.copytree(Path(runyard.__file__).parent, old)
    with open(old / "supervisor" / "protocol.py", "a") as file:
        file.write("\n# of an older release\n")
    yard = make_yard(env={"PYTHONPATH": str(old.parent)}).start()
    truth, go = Truth(tmp_path / "truth"), tmp_path / "go"
    ends = yard.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 7"])
    stays = yard.submit(
        ["sh", "-c", f"exec 9>{truth.path}; setsid sleep 600 & echo up >&9; exec sleep 600"],
        grace_s=1,
    )
    until(lambda: truth.held() and truth.data)
    for ref in (ends, stays):
        yard.wait(ref, "running")
    old_keeper = keeper_pid(yard.data)
    words = Path(f"/proc/{old_keeper}/cmdline").read_bytes().split(b"\0")
    assert str(old).encode() in b" ".join(words)
    yard.kill9()
    del yard.env["PYTHONPATH"]
    yard.start()
    new = yard.submit(["true"])
    yard.wait(new, "completed")
    go.touch()
    yard.wait(ends, "failed")
    assert yard.attempts(ends)[0]["exit_code"] == 7
    assert truth.held()
    assert yard.cancel(stays).body["status"] == "cancelled"
    assert not truth.held()
    assert yard.ask(f"/jobs/{stays}/receipt")["proof"] == "echild"
    until(lambda: not alive(old_keeper), words="the old keeper leaves after its last attempt")
    truth.close()


def test_supervisor_sigstop_reported_not_killed(make_yard):
    """R43: one that hangs is reported by its silence, and neither it nor its job is ended."""
    yard = make_yard().start()
    ref = yard.submit(["sleep", "600"], grace_s=1)
    yard.wait(ref, "running")
    folder = yard.data / "attempts" / f"{ref}.1"
    written = journal.read(str(folder))
    until((folder / "hb").exists, words="the first heartbeat")
    os.kill(written.supervisor["pid"], signal.SIGSTOP)
    try:
        until(lambda: stat(written.supervisor["pid"])[0] == "T", words="it stands still")
        long_ago = time.time() - 300
        os.utime(folder / "hb", (long_ago, long_ago))
        yard.kill9()
        yard.start()
        log = yard.data / "logs" / "server.log"
        until(lambda: "its supervisor has been silent since" in log.read_text())
        assert yard.status(ref) == "running"
        assert alive(written.job["pid"])
        assert alive(written.supervisor["pid"])
    finally:
        os.kill(written.supervisor["pid"], signal.SIGCONT)
    assert yard.cancel(ref).body["status"] == "cancelled"


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


def test_supervisor_kill9_while_the_server_lives(make_yard, tmp_path):
    """R41: what it left is ended, and the next attempt starts by itself."""
    yard = make_yard().start()
    truth = Truth(tmp_path / "truth")
    tree = f"exec 9>{truth.path}; setsid sleep 600 & echo up >&9; exec sleep 600"
    ref = yard.submit(["sh", "-c", tree], max_retries=1)
    until(lambda: truth.held() and truth.data)
    yard.wait(ref, "running")
    kill9(journal.read(str(yard.data / "attempts" / f"{ref}.1")).supervisor)
    until(lambda: len(yard.attempts(ref)) == 2)
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
    not only by the reconcile of now and then."""
    yard = make_yard(env={"RUNYARD_RECONCILE_INTERVAL": "3600"}).start()
    keeper = keeper_pid(yard.data)
    os.kill(keeper, signal.SIGSTOP)
    ran = tmp_path / "ran"
    ref = yard.submit(["sh", "-c", f"echo ran >>{ran}"])
    folder = yard.data / "attempts" / f"{ref}.1"
    until(lambda: (folder / "journal").exists() and journal.read(str(folder)).spec)
    os.kill(keeper, signal.SIGKILL)
    yard.wait(ref, "completed")
    assert ran.read_text() == "ran\n"
    assert [attempt["end"] for attempt in yard.attempts(ref)] == ["never_started", "completed"]
