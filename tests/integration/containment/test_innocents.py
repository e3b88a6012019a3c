"""Nobody else's process is ever signalled (R41: no innocent is killed)."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from runyard.supervisor import (
    belonging,
    identity,
    journal,
    process_table,
    reconcile,
    stop_request,
)

# Its own in every process: tests that run beside this one look for their strangers too.
LOST = f"job-lost{os.getpid()}"
SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]


@pytest.fixture
def stranger():
    """Starts processes that must survive."""
    started = []

    def start(argv=None, **options):
        process = subprocess.Popen(argv or SLEEPER, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def lost_attempt(tmp_path, *, pid, ticks=None, attempt_id=f"{LOST}.1", **job):
    """The folder of an attempt whose supervisor is dead, naming this pid as its main process."""
    folder = str(tmp_path / attempt_id)
    tag = random.getrandbits(60) | 1 << 60
    journal.create(folder, {"attempt_id": attempt_id, "tag": tag, "argv": [], "env": {}})
    me = identity.of_process(os.getpid())
    journal.append(folder, "supervisor", me)
    record = {
        "pid": pid,
        "start_ticks": identity.start_ticks(pid) if ticks is None else ticks,
        "sid": pid,
        "boot_id": me["boot_id"],
        "pidns": me["pidns"],
        "started_at": time.time(),
        **job,
    }
    journal.append(folder, "job", record)
    return folder, tag


def test_recorded_process_is_killed(tmp_path, stranger):
    """The counter-proof: the exact recorded identity is ours and is ended."""
    process = stranger()
    folder, _ = lost_attempt(tmp_path, pid=process.pid)
    end = reconcile.settle(folder)
    assert end["cause"] == "supervisor_lost"
    assert end["processes_ended"] == 1
    assert process.wait(60) == -signal.SIGKILL


def test_recorded_pid_taken_by_stranger_not_killed(tmp_path, stranger):
    process = stranger()
    ticks = identity.start_ticks(process.pid)
    folder, _ = lost_attempt(tmp_path, pid=process.pid, ticks=ticks - 7)
    end = reconcile.settle(folder)
    assert (end["code"], end["processes_ended"]) == (None, 0)
    assert process.poll() is None


def test_recorded_session_number_recycled_not_killed(tmp_path, stranger):
    """The session a dead main process led is no proof for whoever leads it now."""
    process = stranger(start_new_session=True)
    folder, _ = lost_attempt(tmp_path, pid=process.pid, ticks=1)
    reconcile.settle(folder)
    assert process.poll() is None


def test_marker_in_strangers_argv_not_killed(tmp_path, stranger):
    process = stranger([*SLEEPER, f"RUNYARD_ATTEMPT_ID={LOST}.1"])
    folder, _ = lost_attempt(tmp_path, pid=process.pid, ticks=1)
    reconcile.settle(folder)
    assert process.poll() is None


def test_marker_prefix_of_other_attempt_not_killed(tmp_path, stranger):
    process = stranger(
        env={"RUNYARD_ATTEMPT_ID": f"{LOST}.12", "XRUNYARD_ATTEMPT_ID": f"{LOST}.1"}
    )
    folder, _ = lost_attempt(tmp_path, pid=process.pid, ticks=1)
    reconcile.settle(folder)
    assert process.poll() is None


def test_marker_in_environment_is_a_proof(tmp_path, stranger):
    process = stranger(env={"RUNYARD_ATTEMPT_ID": f"{LOST}.1"})
    wait_exec(process.pid)
    folder, _ = lost_attempt(tmp_path, pid=2, ticks=identity.start_ticks(process.pid))
    assert reconcile.settle(folder)["processes_ended"] == 1
    assert process.wait(60) == -signal.SIGKILL


def test_marker_does_not_outweigh_another_attempts_tag(tmp_path, stranger):
    """Two yards of one user that happened to use the same attempt id."""
    limits = "import resource, time; resource.setrlimit(10, (1 << 59, 1 << 59)); time.sleep(600)"
    process = stranger(
        [sys.executable, "-I", "-S", "-c", limits], env={"RUNYARD_ATTEMPT_ID": f"{LOST}.1"}
    )
    deadline = time.monotonic() + 60
    while process_table.tag(process.pid) != 1 << 59:
        assert time.monotonic() < deadline
    folder, _ = lost_attempt(tmp_path, pid=2, ticks=identity.start_ticks(process.pid))
    assert reconcile.settle(folder)["processes_ended"] == 0
    assert process.poll() is None


def test_marker_of_a_process_older_than_the_job_not_killed(tmp_path, stranger):
    process = stranger(env={"RUNYARD_ATTEMPT_ID": f"{LOST}.1"})
    wait_exec(process.pid)
    later = identity.start_ticks(process.pid) + 5
    folder, _ = lost_attempt(tmp_path, pid=2, ticks=later)
    reconcile.settle(folder)
    assert process.poll() is None


def test_boot_id_changed_nothing_signalled(tmp_path, stranger):
    process = stranger()
    folder, _ = lost_attempt(tmp_path, pid=process.pid, boot_id="another")
    end = reconcile.settle(folder)
    assert (end["cause"], end["code"], end["proof"]) == ("lost_host_restart", None, "boot")
    assert process.poll() is None


@pytest.mark.container
def test_pid_namespace_changed_nothing_signalled(tmp_path, stranger):
    process = stranger()
    folder, _ = lost_attempt(tmp_path, pid=process.pid, pidns=1)
    assert reconcile.settle(folder)["cause"] == "lost_host_restart"
    assert process.poll() is None


def test_main_exit_survives_a_host_restart(tmp_path, stranger):
    process = stranger()
    folder, _ = lost_attempt(tmp_path, pid=process.pid, boot_id="another")
    journal.append(folder, "main_exit", {"code": 3, "signal": None, "ended_at": 5.0, "stop": None})
    end = reconcile.settle(folder)
    assert (end["code"], end["cause"], end["ended_at"]) == (3, "exited", 5.0)


def test_own_ancestors_and_self_are_spared(tmp_path):
    """Even where the record names this very process."""
    folder, _ = lost_attempt(tmp_path, pid=os.getpid())
    assert reconcile.settle(folder)["processes_ended"] == 0
    folder, _ = lost_attempt(tmp_path, pid=os.getppid(), attempt_id="job-parent.1")
    assert reconcile.settle(folder)["processes_ended"] == 0


def test_zombies_are_left_alone(tmp_path):
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    folder, _ = lost_attempt(tmp_path, pid=pid)
    assert reconcile.settle(folder)["processes_ended"] == 0
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_other_users_process_not_killed(tmp_path, stranger):
    process = stranger(
        ["/bin/sleep", "600"],
        env={"RUNYARD_ATTEMPT_ID": f"{LOST}.1"},
        user=65534,
        group=65534,
        extra_groups=[],
    )
    wait_exec(process.pid, b"sleep")
    folder, _ = lost_attempt(tmp_path, pid=2, ticks=1)
    assert reconcile.settle(folder)["processes_ended"] == 0
    assert process.poll() is None


def test_nudge_refuses_a_recycled_supervisor_pid(tmp_path, stranger):
    """SIGUSR1 would end a stranger: the identity must match before it is sent."""
    process = stranger()
    folder = str(tmp_path / "job-n.1")
    journal.create(folder, {"attempt_id": "job-n.1", "tag": 5})
    record = identity.of_process(process.pid)
    journal.append(folder, "supervisor", {**record, "start_ticks": record["start_ticks"] - 1})
    assert not stop_request.nudge(folder)
    assert process.poll() is None


def test_pidfd_inode_is_checked_where_there_is_one(stranger):
    process = stranger()
    record = identity.of_process(process.pid)
    if record["pidfd_ino"] is None:
        pytest.skip("kernel older than 6.9: pidfds have no inode of their own")
    assert identity.open_verified({**record, "pidfd_ino": record["pidfd_ino"] + 1}) is None
    pidfd = identity.open_verified(record)
    assert pidfd is not None
    os.close(pidfd)


# In a pid namespace of its own: a process ends, and the next one gets its number.
REUSE = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from runyard.supervisor import identity, journal, reconcile, stop_request

def sleeper():
    pid = os.fork()
    if pid == 0:
        signal.pause()
    return pid

def end(pid):
    os.kill(pid, 9)
    os.waitpid(pid, 0)

def used_again(pid):
    for _ in range(200):
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
        new = sleeper()
        if new == pid:
            return
        end(new)
    sys.exit("the pid was not used again")

def lives(pid):
    return os.waitpid(pid, os.WNOHANG) == (0, 0)

def record_of(pid):
    return {**identity.of_process(pid), "sid": pid, "started_at": time.time()}

same_tick = 0
for number in range(int(sys.argv[3])):
    first = sleeper()
    record = record_of(first)
    stale = os.pidfd_open(first)
    end(first)
    used_again(first)
    same_tick += identity.start_ticks(first) == record["start_ticks"]
"""
STALE_PIDFD = """
    try:
        signal.pidfd_send_signal(stale, 9)
        sys.exit("a stale pidfd reached the newcomer")
    except ProcessLookupError:
        pass
    assert lives(first)
"""
SAME_TICK = """
    if identity.start_ticks(first) != record["start_ticks"]:
        end(first)
        os.close(stale)
        continue
    # Whatever we have that signals a recorded process.
    assert identity.open_verified(record) is None
    folder = f"{sys.argv[2]}/job-r{number}.1"
    journal.create(folder, {"attempt_id": f"job-r{number}.1", "tag": 1 << 60 | number})
    journal.append(folder, "supervisor", record)
    journal.append(folder, "job", record)
    assert not stop_request.nudge(folder)
    reconcile.settle(folder)
    assert lives(first), f"number {number} was killed"
    if same_tick == 4:
        break
"""
LAST = """
    end(first)
    os.close(stale)
print(same_tick)
"""


def reuse_pids(tmp_path, program, rounds):
    """How often the newcomer had also the start time of the process whose number it got."""
    source = os.path.abspath(f"{os.path.dirname(journal.__file__)}/../..")
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-I", "-S", "-c"]
    command += [REUSE + program + LAST, source, str(tmp_path), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(f"no pid namespaces here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to choose the next pid")
def test_pid_reuse_forced_stale_pidfd_refused(tmp_path):
    """A pidfd opened before the pid was used again never reaches the newcomer."""
    reuse_pids(tmp_path, STALE_PIDFD, 50)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to choose the next pid")
def test_pid_reuse_same_tick_start_time(tmp_path):
    """Start times count in ticks of 10 ms: number and start time can both be another's."""
    if identity.pidfd_inode(os.getpid()) is None:
        pytest.skip("kernel older than 6.9: start times are all there is")
    assert reuse_pids(tmp_path, SAME_TICK, 1000) > 0


def test_a_claim_answers_only_for_its_own(stranger):
    mine, other = stranger(), stranger()
    claim = belonging.Claim.__new__(belonging.Claim)
    claim.tag, claim.marker = 12345, b"RUNYARD_ATTEMPT_ID=job-c.1"
    claim.start_ticks = identity.start_ticks(mine.pid)
    claim.identities = {(mine.pid, claim.start_ticks): identity.pidfd_inode(mine.pid)}
    claims = belonging.Claims({"job-c.1": claim})
    assert claims.owner(mine.pid) == "job-c.1"
    assert claims.owner(other.pid) is None
    claims.kill(other.pid, "job-c.1")
    assert other.poll() is None


def wait_exec(pid, name=b"python"):
    deadline = time.monotonic() + 60
    while name not in process_table.command_line(pid):
        assert time.monotonic() < deadline
        time.sleep(0.005)
