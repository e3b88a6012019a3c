"""The keeper may die, hang, be replaced or upgraded; jobs go on (R54)."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest
from keeper_yard import Yard, died, wait_for
from without_rights import becoming, reachable_python
from workloads import SHAPES

from runyard.supervisor import (
    keeper_client,
    keeper_main,
    liveness,
    process_table,
    protocol,
    reconcile,
)

SCANNABLE = sorted(set(SHAPES) - {"hopper_1ms", "hopper_tight_x4"})


LISTEN = """
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
while True:
    client, _ = listener.accept()
    print("connected", client.recv(4096), flush=True)
"""
ASK = """
import socket, sys
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect(sys.argv[1])
try:
    client.send(b"hello")
    print(client.recv(4096))
except (BrokenPipeError, ConnectionResetError):
    print(b"")
"""


def kill_keeper(yard):
    """Dead to us, too: what is said to it while it dies would be lost."""
    pid = yard.keeper_pid()
    with died(pid) as dead:
        os.kill(pid, signal.SIGKILL)
        wait_for(dead, "the keeper's death")


def test_keeper_kill9_jobs_continue(yard):
    release = f"{yard.data_dir}/release"
    code = f"while [ ! -e {release} ]; do sleep 0.02; done; exit 21"
    ids = [yard.start(["/bin/sh", "-c", code]) for _ in range(5)]
    for attempt_id in ids:
        yard.wait_job(attempt_id)
    kill_keeper(yard)
    for attempt_id in ids:
        assert liveness.supervisor_alive(yard.folder(attempt_id))
    with open(release, "w"):
        pass
    for attempt_id in ids:
        end = yard.wait_end(attempt_id)
        assert (end["code"], end["by"], end["proof"]) == (21, "supervisor", "echild")
        assert yard.hear(attempt_id, "ended")["exit"] == end


def test_supervisors_leave_when_their_keeper_is_gone(yard):
    attempt_id = yard.start(["/bin/sleep", "0.3"])
    yard.wait_job(attempt_id)
    pid = yard.supervisor_pid(attempt_id)
    kill_keeper(yard)
    yard.wait_end(attempt_id)
    wait_for(lambda: not process_table.alive(pid), "the supervisor to leave")


def test_keeper_restarted_new_jobs_supervised(yard):
    old = yard.start(["/bin/sleep", "600"])
    yard.wait_job(old)
    kill_keeper(yard)
    new = yard.start(["/bin/sh", "-c", "exit 4"])
    assert yard.wait_end(new)["code"] == 4
    yard.stop(old)
    assert yard.wait_end(old)["cause"] == "cancelled"


@pytest.mark.parametrize("shape", SCANNABLE)
def test_keeper_and_supervisor_kill9_tag_sweep(yard, shape):
    """Supervisor and keeper both dead: nobody is the parent, the tag still tells (R41)."""
    attempt_id, alive, _ = yard.start_shape(shape)
    supervisor = yard.supervisor_pid(attempt_id)
    kill_keeper(yard)
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not liveness.supervisor_alive(yard.folder(attempt_id)), "its death")
    end = wait_for(lambda: reconcile.settle(yard.folder(attempt_id)), "the verdict")
    assert (end["code"], end["cause"], end["by"]) == (None, "supervisor_lost", "reconciler")
    alive.wait_all_dead()
    yard.check_ended(attempt_id)


def test_everything_killed_at_once_50_jobs(yard):
    """server, keeper and 20 of 50 supervisors killed: those are lost, the rest adoptable (R54)."""
    ids = [yard.start(["/bin/sh", "-c", "setsid sleep 600 & exec sleep 600"]) for _ in range(50)]
    for attempt_id in ids:
        yard.wait_job(attempt_id)
    victims, living = ids[:20], ids[20:]
    pids = [yard.supervisor_pid(attempt_id) for attempt_id in victims]
    kill_keeper(yard)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    folders = {yard.folder(attempt_id): attempt_id for attempt_id in ids}
    wait_for(lambda: not any(liveness.supervisor_alive(yard.folder(i)) for i in victims), "deaths")
    lost = [yard.folder(attempt_id) for attempt_id in victims]
    wait_for(lambda: all(reconcile.settle_all(lost).values()), "the verdicts")
    ends = reconcile.settle_all(folders)
    for folder, end in ends.items():
        if folders[folder] in victims:
            assert (end["code"], end["cause"]) == (None, "supervisor_lost")
            yard.check_ended(folders[folder])
        else:
            assert end is None
    for attempt_id in living:
        yard.stop(attempt_id, grace_s=1.0)
    for attempt_id in living:
        assert yard.wait_end(attempt_id)["cause"] == "cancelled"


def test_adoption_of_many_is_quick(yard):
    """Classifying 200 living attempts is reading 200 small files; here 40, measured per folder."""
    ids = [yard.start(["/bin/sleep", "600"]) for _ in range(40)]
    for attempt_id in ids:
        yard.wait_job(attempt_id)
    folders = [yard.folder(attempt_id) for attempt_id in ids] * 5
    began = time.thread_time()  # whatever else runs on this machine
    sights = [reconcile.look(folder) for folder in folders]
    took = time.thread_time() - began
    assert {sight.state for sight in sights} == {reconcile.ALIVE}
    assert took < 1.0


def test_keeper_killed_mid_fork(yard):
    """Attempts in flight while the keeper dies end once each, or never start."""
    ids = []
    for _ in range(5):
        batch = [yard.start(["/bin/sh", "-c", "exit 9"]) for _ in range(6)]
        ids += batch
        os.kill(yard.keeper_pid(), signal.SIGKILL)
    folders = {yard.folder(attempt_id): attempt_id for attempt_id in ids}
    for folder in folders:
        wait_for(lambda f=folder: not liveness.supervisor_alive(f), "its supervisor to be done")

    def settled():
        """None of them while a supervisor takes it in this very moment."""
        ends = reconcile.settle_all(folders, keeper_alive=True)
        return ends if all(ends.values()) else None

    for folder, end in wait_for(settled, "the verdicts").items():
        assert (end["code"], end["cause"]) in ((9, "exited"), (None, "never_started"))
        yard.check_ended(folders[folder])


def test_only_one_keeper_per_data_directory(yard):
    yard.keeper.ensure()
    first = yard.keeper_pid()
    second = keeper_client.KeeperClient(yard.data_dir)
    second._start()
    assert second.hello()["pid"] == first
    second.close()


def test_another_generation_drains(yard):
    """An upgraded server starts its own keeper; the old one ends with its last attempt."""
    attempt_id = yard.start(["/bin/sleep", "600"])
    yard.wait_job(attempt_id)
    old_pid = yard.keeper_pid()
    newer = keeper_client.KeeperClient(yard.data_dir)
    newer.generation = "v1-newer"
    newer.ensure()
    assert newer.hello()["pid"] != old_pid
    assert yard.keeper.hello()["leaving"]
    assert process_table.alive(old_pid)
    yard.stop(attempt_id)
    yard.wait_end(attempt_id)
    wait_for(lambda: not process_table.alive(old_pid), "the old keeper to leave")
    newer.leave()
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir, "v1-newer"), "the new keeper")
    newer.close()


def test_a_keeper_that_nobody_needs_leaves(tmp_path):
    """A server that died and never came back leaves no idle processes behind for ever."""
    generation = keeper_client.generation()
    (tmp_path / "keeper").mkdir()
    command = [sys.executable, "-I", "-S", "-X", "utf8", keeper_main.__file__]
    command += ["--data-dir", str(tmp_path), "--generation", generation, "--alone-s", "0.3"]
    yard = Yard(tmp_path)

    def connected():
        """It may have left again before we came."""
        subprocess.run(command, check=True)
        if yard.keeper._connect():
            with contextlib.suppress(OSError):
                if not yard.keeper._exchange(b"hello")["leaving"]:
                    return True
            yard.keeper._disconnect()
        return False

    wait_for(connected, "the keeper")
    attempt_id = yard.start(["/bin/sleep", "0.3"])
    yard.wait_job(attempt_id)
    pid = yard.keeper_pid()
    yard.keeper.close()
    yard.wait_end(attempt_id)
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper to leave")
    wait_for(lambda: not process_table.alive(pid), "its end")
    assert not os.path.exists(f"{yard.data_dir}/keeper/{generation}.sock")
    yard.close()


def test_leave_waits_for_running_attempts(yard):
    attempt_id = yard.start(["/bin/sh", "-c", "sleep 0.5; exit 2"])
    yard.wait_job(attempt_id)
    yard.keeper.leave()
    assert yard.wait_end(attempt_id)["code"] == 2
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper to leave")


def test_run_after_leave_is_not_lost(yard):
    first = yard.start(["/bin/sleep", "600"])
    yard.wait_job(first)
    yard.keeper.leave()
    second = yard.start(["/bin/sh", "-c", "exit 3"])
    assert yard.wait_end(second)["code"] == 3


def test_unknown_requests_are_answered(yard):
    yard.keeper.ensure()
    assert "error" in yard.keeper._ask(b"dance")
    assert yard.keeper.hello()["v"] == protocol.VERSION
    with pytest.raises(ValueError, match="not an attempt id"):
        yard.keeper.run("../../etc")


def test_keeper_survives_hostile_messages(yard):
    yard.keeper.ensure()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(f"{yard.data_dir}/keeper/{yard.keeper.generation}.sock")
    for message in (b"\xff\xfe", b"run ../x", b"run " + b"a" * 3000, b"run nothing-there", b"run"):
        sock.send(message)
    sock.close()
    assert yard.wait_end(yard.start(["/bin/true"]))["code"] == 0


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_socket_owned_by_stranger_rejected(yard):
    """Somebody else listens where the keeper should: nothing is said to that process. And our
    keeper hangs up on somebody else who got as far as its socket."""
    with tempfile.TemporaryDirectory(prefix="runyard-stranger-") as place:
        address = f"{place}/socket"
        os.chmod(place, 0o777)
        python = [reachable_python(), "-I", "-c"]
        listening = subprocess.Popen(
            [*python, LISTEN, address], stdout=subprocess.PIPE, cwd="/", **becoming()
        )
        try:
            assert listening.stdout.readline() == b"listening\n"
            ours = f"{yard.data_dir}/keeper/{yard.keeper.generation}.sock"
            os.mkdir(os.path.dirname(ours))
            os.symlink(address, ours)
            assert not yard.keeper._connect()
            assert listening.stdout.readline() == b"connected b''\n"
            attempt_id = yard.start(["/bin/sh", "-c", "exit 3"])
            assert yard.wait_end(attempt_id)["code"] == 3
        finally:
            listening.kill()
            heard = listening.communicate()[0]
        assert set(heard.splitlines()) <= {b"connected b''"}
        os.unlink(address)
        os.link(ours, address)
        os.chmod(address, 0o777)
        asking = subprocess.run(
            [*python, ASK, address], capture_output=True, cwd="/", check=True, **becoming()
        )
        assert asking.stdout == b"b''\n"


def test_keeper_of_another_user_refused(yard, monkeypatch):
    """The same check without being root."""
    yard.keeper.ensure()
    stranger = keeper_client.KeeperClient(yard.data_dir)
    monkeypatch.setattr(keeper_client, "_peer_uid", lambda _: os.getuid() + 1)
    assert not stranger._connect()
    stranger.close()


def test_long_path_socket(tmp_path):
    """A data directory deeper than a socket address can hold."""
    deep = tmp_path.joinpath(*["d" * 60] * 4)
    deep.mkdir(parents=True)
    assert len(str(deep)) > 200
    yard = Yard(deep)
    try:
        attempt_id = yard.start(["/bin/sh", "-c", "exit 5"])
        assert yard.wait_end(attempt_id)["code"] == 5
        assert yard.hear(attempt_id, "ended")
    finally:
        yard.close()


def test_keeper_starts_without_our_environment(yard):
    """Environment scrubbed, own session, no descriptor of ours, standard library only."""
    yard.keeper.ensure()
    pid = yard.keeper_pid()
    with open(f"/proc/{pid}/environ", "rb") as file:
        names = {line.partition(b"=")[0] for line in file.read().split(b"\0") if line}
    assert names <= {b"PATH", b"HOME", b"LANG", b"LC_ALL", b"LC_CTYPE", b"LD_LIBRARY_PATH"}
    assert os.getsid(pid) != os.getsid(0)
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        assert file.read().split(b"\0")[:3] == [sys.executable.encode(), b"-I", b"-S"]
    with open(f"/proc/{pid}/maps") as file:
        assert "site-packages" not in file.read()


def test_news_is_kept_while_the_queue_is_full(yard):
    """The server does not read for a while: ends are told when it does."""
    ids = [yard.start(["/bin/true"]) for _ in range(60)]
    for attempt_id in ids:
        wait_for(lambda a=attempt_id: yard.journal(a).exit, "the end")
    for attempt_id in ids:
        assert yard.hear(attempt_id, "ended")["exit"]["code"] == 0
