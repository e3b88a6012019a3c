"""The attempt's folder when things go wrong: full disks, torn records, clocks, links (R42)."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from keeper_yard import Yard, wait_for

from runyard.supervisor import (
    journal,
    keeper_client,
    kernel,
    liveness,
    process_table,
    protocol,
    reconcile,
    stop_request,
)
from runyard.supervisor.attempt import Attempt
from runyard.supervisor.host import SIGNALS, Host
from small_disk import fill, small_disk

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount")


@pytest.fixture
def small_yard(tmp_path):
    """On a file system of 1 MiB."""
    with small_disk(tmp_path / "disk", 1) as place:
        yard = Yard(place)
        yield yard
        (place / "filler").unlink(missing_ok=True)
        yard.close()


@needs_root
def test_disk_full_at_exit_record(small_yard):
    """The room for the end was reserved at the start."""
    attempt_id = small_yard.start(["/bin/sleep", "600"])
    small_yard.wait_job(attempt_id)
    fill(Path(small_yard.data_dir, "filler"))
    os.kill(small_yard.journal(attempt_id).job["pid"], signal.SIGKILL)
    end = small_yard.wait_end(attempt_id)
    assert (end["signal"], end["by"]) == (signal.SIGKILL, "supervisor")


@needs_root
def test_disk_full_job_sees_enospc_supervisor_lives(small_yard):
    code = (
        "import os\n"
        "try:\n"
        "    while True: os.write(1, b'x' * 65536)\n"
        "except OSError as error:\n"
        "    os._exit(error.errno)\n"
    )
    attempt_id = small_yard.start_python(code)
    end = small_yard.wait_end(attempt_id)
    assert (end["code"], end["by"]) == (errno.ENOSPC, "supervisor")


@needs_root
def test_disk_full_before_the_start(small_yard):
    """Nothing runs whose identity cannot be recorded; the record comes when there is room."""
    attempt_id = small_yard.prepare(["/bin/true", "x" * 3900])
    fill(Path(small_yard.data_dir, "filler"))
    small_yard.keeper.run(attempt_id)
    time.sleep(0.5)
    os.unlink(f"{small_yard.data_dir}/filler")
    end = small_yard.wait_end(attempt_id)
    assert end["code"] in (None, 0)
    if end["code"] is None:
        assert end["cause"] in ("never_started", "start_failed")


def test_torn_json_ignored(yard):
    """A supervisor that died in the middle of a record; the next one begins a new line."""
    attempt_id = yard.prepare(["/bin/sh", "-c", "exit 3"])
    with open(f"{yard.folder(attempt_id)}/journal", "ab") as file:
        file.write(b'0badcafe {"v":1,"kind":"exit","code":0')
    yard.keeper.run(attempt_id)
    end = yard.wait_end(attempt_id)
    assert end["code"] == 3
    assert yard.journal(attempt_id).damaged == 1


def test_tmp_file_ignored(yard):
    """A stop request is written beside and renamed; what a dead writer left says nothing."""
    attempt_id = yard.prepare(["/bin/sh", "-c", "exit 3"])
    folder = yard.folder(attempt_id)
    whole = {"v": 1, "seq": 9, "cause": "user", "grace_s": 0, "requested_by": "x"}
    for number, text in enumerate((json.dumps({**whole, "requested_at": 1.0}), '{"v": 1, "se')):
        with open(f"{folder}/{protocol.STOP}.{number}.tmp", "w") as file:
            file.write(text)
    assert stop_request.read(folder) is None
    yard.keeper.run(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["code"], end["cause"], end["stop"]) == (3, "exited", None)


def test_torn_stop_request_ignored(yard):
    attempt_id = yard.start(["/bin/sleep", "600"])
    yard.wait_job(attempt_id)
    with open(f"{yard.folder(attempt_id)}/{protocol.STOP}", "w") as file:
        file.write('{"v": 1, "seq": 1, "cau')
    assert stop_request.nudge(yard.folder(attempt_id))
    yard.stop(attempt_id, seq=2, grace_s=1)
    assert yard.wait_end(attempt_id)["stop"]["seq"] == 2


def test_journal_without_spec_never_starts(yard):
    folder = yard.folder("job-empty.1")
    os.makedirs(folder)
    with open(f"{folder}/journal", "wb"):
        pass
    yard.keeper.run("job-empty.1")
    assert wait_for(lambda: journal.read(folder).exit, "the end")["cause"] == "never_started"


def test_records_of_another_version_are_not_judged(yard):
    """server_upgrade: what a newer supervisor wrote is left to those who know it."""
    attempt_id = yard.prepare(["/bin/true"])
    folder = yard.folder(attempt_id)
    with open(f"{folder}/journal", "ab") as file:
        file.write(journal.encode({"v": 99, "kind": "job", "pid": 1}))
    assert reconcile.look(folder).state == reconcile.UNREADABLE
    assert reconcile.settle(folder) is None
    assert journal.read(folder).foreign == 1


def test_exit_record_never_overwritten(yard):
    attempt_id = yard.start(["/bin/sh", "-c", "exit 4"])
    end = yard.wait_end(attempt_id)
    folder = yard.folder(attempt_id)
    assert not journal.append(folder, "exit", {"code": 0}, once=True)
    assert not journal.append(folder, "main_exit", {"code": 0})
    assert reconcile.settle(folder) == end
    assert yard.journal(attempt_id).exit["code"] == 4


def test_many_writers_one_exit_record(yard):
    """Keeper, reconciler and supervisor at once: the first wins, the others learn it."""
    attempt_id = yard.prepare(["/bin/true"])
    folder = yard.folder(attempt_id)
    source = os.path.abspath(f"{os.path.dirname(journal.__file__)}/../..")
    code = f"""
import sys
sys.path.insert(0, {source!r})
from runyard.supervisor import journal
fields = {{"code": int(sys.argv[2])}}
print(journal.append(sys.argv[1], "exit", fields, once=True, sync=True))
"""
    writers = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code, folder, str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    answers = [writer.communicate()[0].strip() for writer in writers]
    assert answers.count("True") == 1
    assert yard.journal(attempt_id).exit["code"] == answers.index("True")


def test_settle_and_start_cannot_both_win(yard, tmp_path):
    """The reconciler calls an attempt never started while it is being handed over."""
    for _ in range(20):
        ran = tmp_path / "ran"
        ran.unlink(missing_ok=True)
        attempt_id = yard.prepare(["/usr/bin/touch", str(ran)])
        yard.keeper.run(attempt_id)
        reconcile.settle(yard.folder(attempt_id))
        end = yard.wait_end(attempt_id)
        assert (end["cause"] == "never_started") is not ran.exists()


def test_job_that_links_its_temp_away(yard, tmp_path):
    """Removing the temporary directory never leaves it."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    attempt_id = yard.start(
        [
            "/bin/sh",
            "-c",
            f'ln -s {precious} "$TMPDIR/link"; mkdir -p "$TMPDIR/a/b"; '
            f'touch "$TMPDIR/a/b/c"; chmod 000 "$TMPDIR/a"',
        ]
    )
    assert yard.wait_end(attempt_id)["temp_removed"]
    assert (precious / "file").read_text() == "kept"
    other = yard.start(["/bin/sh", "-c", f'rmdir "$TMPDIR"; ln -s {precious} "$TMPDIR"'])
    wait_for(lambda: yard.journal(other).exit, "the end")
    assert (precious / "file").read_text() == "kept"


def test_attempt_folder_modes(yard):
    attempt_id = yard.start(["/bin/echo", "hi"])
    yard.wait_end(attempt_id)
    folder = yard.folder(attempt_id)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    for name in (protocol.JOURNAL, protocol.LOG):
        assert os.stat(f"{folder}/{name}").st_mode & 0o777 == 0o600


def test_socket_and_lock_gone(yard):
    """After the end nobody holds the attempt's lock; after the keeper, nor its lock and socket."""
    attempt_id = yard.start(["/bin/sleep", "600"])
    yard.wait_job(attempt_id)
    folder = yard.folder(attempt_id)
    assert liveness.supervisor_alive(folder)
    yard.stop(attempt_id)
    yard.wait_end(attempt_id)
    wait_for(lambda: not liveness.supervisor_alive(folder), "the lock")
    assert not [name for name in os.listdir(folder) if stat.S_ISSOCK(mode(f"{folder}/{name}"))]
    assert keeper_client.keeper_locked(yard.data_dir)
    yard.keeper.leave()
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's lock")
    assert not [name for name in os.listdir(f"{yard.data_dir}/keeper") if name.endswith(".sock")]


def mode(path):
    return os.lstat(path).st_mode


def test_clock_jump_backwards(yard):
    """The clock is set back by an hour while the job runs: it does not end before it began."""
    jump = f"{yard.data_dir}/jump"
    attempt_id = yard.prepare(["/bin/sh", "-c", f"sleep 0.2; touch {jump}; sleep 0.2; exit 4"])
    clock = time.time

    def clock_set_back():
        return clock() - 3600 * os.path.exists(jump)

    pid = os.fork()
    if pid == 0:
        try:
            time.time = clock_set_back
            os.setsid()
            os.chdir(yard.data_dir)
            kernel.become_subreaper()
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            Attempt(Host(0), attempt_id).run()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    end = yard.wait_end(attempt_id)
    assert end["time"] < end["started_at"]  # when the record was written, by that clock
    assert end["code"] == 4
    assert 0.4 <= end["ended_at"] - end["started_at"] < 60


def test_end_time_is_the_jobs_own(yard):
    """Recorded when it ended, not when somebody looked; also with the server away."""
    yard.stop_listening()
    attempt_id = yard.start(["/bin/sh", "-c", "sleep 0.3; exit 1"])
    end = yard.wait_end(attempt_id)
    assert 0.3 <= end["ended_at"] - end["started_at"] < 45
    yard.listen()


def test_fsync_order_traced(yard, tmp_path):
    """main_exit is on disk before the reaping wait; the identity is written before the go."""
    trace = tmp_path / "trace"
    yard.keeper.ensure()
    pids = wait_for(lambda: all_ready(yard.keeper_pid()), "supervisors with a child each")
    calls = "trace=write,fdatasync,wait4,waitid,execve,fcntl"
    command = [
        "strace",
        "-f",
        "-s",
        "99",
        "-o",
        str(trace),
        "-e",
        calls,
        *(f"-p{pid}" for pid in pids),
    ]
    try:
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        pytest.skip("no strace here")
    try:
        for _ in pids:
            assert "attached" in tracer.stderr.readline()
        yard.wait_end(yard.start(["/bin/true"]))
    finally:
        tracer.terminate()
        tracer.communicate()
    text = trace.read_text()
    job = text.index('\\"kind\\":\\"job\\"')
    executed = text.index('execve("/bin/true"')
    ended = text.index('\\"kind\\":\\"main_exit\\"')
    synced = text.index("fdatasync", ended)
    reaped = text.index("wait4(", ended)
    assert job < executed < ended < synced < reaped


def all_ready(keeper):
    """The keeper's supervisors and the children they hold ready, once each has one."""
    supervisors = process_table.children(keeper)
    held = [process_table.children(pid) for pid in supervisors]
    return all(held) and [*supervisors, *(pid for pids in held for pid in pids)]
