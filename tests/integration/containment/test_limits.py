"""Limits on memory, processes and processors, and how ends by them are named (R18, R33).

Groups are small, made below the group that the tests run in, and gone when a test is over.
"""

import contextlib
import json
import os
import signal
import sys

import pytest
from keeper_yard import wait_for
from without_rights import UID

from runyard.supervisor import attempt_group, cgroup, journal, keeper_client, liveness, reconcile
from runyard.supervisor.attempt import Attempt
from runyard.supervisor.host import SIGNALS, Host

PLACES = cgroup.find()
LIMIT_MB = 64
# Touches memory until it is killed; 2 MiB a step, so that the limit is met exactly.
GROW = "kept = []\nwhile True: kept.append(bytearray(2 << 20))"
HOLD = "kept = bytearray({} << 20); print('held', flush=True); import time; time.sleep(600)"
PYTHON = [sys.executable, "-I", "-S", "-c"]

needs_memory_group = pytest.mark.skipif(
    "memory" not in PLACES, reason="no memory group can be made here: needs root or delegation"
)
needs_pids_group = pytest.mark.skipif(
    "pids" not in PLACES, reason="no pids group can be made here: needs root or delegation"
)
needs_group = pytest.mark.skipif(
    not {"unified", "freezer"} & set(PLACES), reason="no group can be made here"
)
needs_freezer = pytest.mark.skipif(
    cgroup.writable_v1_freezer() is None, reason="no v1 freezer group can be made here"
)


def group_of(yard, attempt_id):
    return attempt_group.Group(yard.journal(attempt_id).group["paths"])


def check_removed(yard, attempt_id):
    for directory in group_of(yard, attempt_id).directories:
        assert not os.path.exists(directory)


@needs_memory_group
def test_oom_v1_classified(yard):
    """The kernel ends it at its limit, and the end says so. On v2 the same code reads v2 files."""
    attempt_id = yard.start([*PYTHON, GROW], cgroup=True, memory_limit_mb=LIMIT_MB)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["signal"], end["code"]) == ("oom", signal.SIGKILL, None)
    assert end["oom_kills"] >= 1
    assert end["limit_mb"] == LIMIT_MB
    assert LIMIT_MB - 8 <= end["memory_peak_mb"] <= LIMIT_MB
    assert end["cgroup_removed"]
    check_removed(yard, attempt_id)


@needs_memory_group
def test_oom_child_only_classified(yard):
    """A worker was killed for memory and main failed because of it."""
    main = f"""
import os, sys
pid = os.fork()
if pid == 0:
    {GROW.replace(chr(10), chr(10) + "    ")}
status = os.waitpid(pid, 0)[1]
sys.exit(3 if os.WIFSIGNALED(status) else 0)
"""
    attempt_id = yard.start([*PYTHON, main], cgroup=True, memory_limit_mb=LIMIT_MB)
    end = yard.wait_end(attempt_id)
    if "unified" in PLACES and PLACES["memory"] == PLACES["unified"]:
        assert end["cause"] == "oom"  # v2 ends all of the job together
    else:
        assert (end["cause"], end["code"]) == ("oom_child", 3)
    assert end["oom_kills"] >= 1


@needs_memory_group
def test_oom_of_a_worker_that_main_got_over(yard):
    """Exit code 0 is a success, whatever happened on the way."""
    main = f"""
import os
pid = os.fork()
if pid == 0:
    {GROW.replace(chr(10), chr(10) + "    ")}
os.waitpid(pid, 0)
"""
    if "unified" in PLACES and PLACES["memory"] == PLACES["unified"]:
        pytest.skip("v2 ends all of the job together")
    end = yard.wait_end(yard.start([*PYTHON, main], cgroup=True, memory_limit_mb=LIMIT_MB))
    assert (end["cause"], end["code"]) == ("exited", 0)
    assert end["oom_kills"] >= 1


def test_oom_soft_without_cgroup(yard):
    """Without a group the supervisor looks at every heartbeat, and asks before it kills."""
    hold = HOLD.format(100)
    attempt_id = yard.start([*PYTHON, hold], memory_limit_mb=LIMIT_MB, memory_soft=True)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["signal"]) == ("oom_soft", signal.SIGTERM)
    assert end["limit_mb"] == LIMIT_MB
    assert LIMIT_MB < end["used_mb"] < 150  # it may have been seen while it grew
    assert [(s["signal"], s["target"]) for s in end["signals"]] == [("TERM", "group")]
    assert end["stop"]["requested_by"] == "supervisor"


def test_soft_limit_counts_shared_memory_once(yard):
    """Five processes that share 40 MiB use 40 MiB, not 200."""
    share = """
import mmap, os, time
block = mmap.mmap(-1, 40 << 20)
block.write(bytes(40 << 20))
for _ in range(4):
    if os.fork() == 0:
        sum(block[::4096])
        time.sleep(600)
sum(block[::4096])
print('shared', flush=True)
time.sleep(600)
"""
    attempt_id = yard.start([*PYTHON, share], memory_limit_mb=100, memory_soft=True)
    wait_for(lambda: b"shared" in yard.log(attempt_id), "the block to be shared")
    beat = f"{yard.folder(attempt_id)}/hb"
    wait_for(lambda: os.path.exists(beat), "a heartbeat")
    first = os.stat(beat).st_mtime
    wait_for(lambda: os.stat(beat).st_mtime > first, "another heartbeat")
    assert yard.journal(attempt_id).exit is None
    yard.stop(attempt_id, grace_s=0)
    assert yard.wait_end(attempt_id)["cause"] == "cancelled"


def test_memory_is_a_request_unless_told_otherwise(yard):
    """No group was asked for and no soft limit: nothing watches."""
    hold = "kept = bytearray(100 << 20)"
    end = yard.wait_end(yard.start([*PYTHON, hold], memory_limit_mb=LIMIT_MB))
    assert (end["cause"], end["code"]) == ("exited", 0)


@pytest.mark.parametrize("group", [False, True])
def test_rlimit_as_not_set_for_gpu_jobs(yard, group):
    """A CUDA context reserves address space far beyond any memory limit."""
    reserve = "import mmap; m = mmap.mmap(-1, 1 << 36, flags=0x4022); print('reserved')"
    attempt_id = yard.start(
        ["/bin/sh", "-c", f'ulimit -v; exec "{sys.executable}" -I -S -c "{reserve}"'],
        env={"CUDA_VISIBLE_DEVICES": "0"},
        cgroup=group,
        memory_limit_mb=LIMIT_MB,
        memory_soft=True,
    )
    assert yard.wait_end(attempt_id)["code"] == 0
    assert yard.log(attempt_id).split() == [b"unlimited", b"reserved"]


def test_affinity_set(yard):
    allowed = sorted(os.sched_getaffinity(0))
    show = "import os; print(*sorted(os.sched_getaffinity(0)))"
    attempt_id = yard.start([*PYTHON, show], cpus=allowed[-1:])
    assert yard.wait_end(attempt_id)["code"] == 0
    assert yard.log(attempt_id).split() == [str(allowed[-1]).encode()]


def test_affinity_to_a_processor_that_is_not_there(yard):
    end = yard.wait_end(yard.start(["/bin/true"], cpus=[4095]))
    assert (end["cause"], end["step"], end["path"]) == ("start_failed", "cpus", "4095")


def test_nice_set(yard):
    attempt_id = yard.start([*PYTHON, "import os; print(os.nice(0))"], nice=7)
    assert yard.wait_end(attempt_id)["code"] == 0
    assert int(yard.log(attempt_id)) == min(19, os.nice(0) + 7)  # above that of these tests


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_externally_classified(yard, number):
    attempt_id = yard.start(["/bin/sleep", "600"])
    yard.wait_job(attempt_id)
    os.kill(yard.journal(attempt_id).job["pid"], number)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["signal"]) == ("killed_externally", number)


def test_killed_externally_with_leftovers_that_we_kill(yard):
    """What we send to its leftovers is not what ended it."""
    attempt_id = yard.start(["/bin/sh", "-c", "trap '' TERM; sleep 600 & echo up; wait"])
    wait_for(lambda: b"up" in yard.log(attempt_id), "the leftover")
    os.kill(yard.journal(attempt_id).job["pid"], signal.SIGKILL)
    end = yard.wait_end(attempt_id)
    assert end["cause"] == "killed_externally"
    assert [s["target"] for s in end["signals"]] == ["leftovers", "children"]


@pytest.mark.parametrize("name", ["SEGV", "BUS", "ABRT", "ILL", "FPE"])
def test_crashed_classified(yard, name):
    end = yard.wait_end(yard.start(["/bin/sh", "-c", f"kill -{name} $$"]))
    assert (end["cause"], end["signal"]) == ("crashed", getattr(signal, f"SIG{name}"))


@needs_pids_group
def test_pids_limit_fork_fails_job_reported(yard):
    fork = """
import os, sys, time
for number in range(100):
    try:
        pid = os.fork()
    except BlockingIOError:
        print(number); sys.exit(9)
    if pid == 0:
        time.sleep(600)
"""
    attempt_id = yard.start([*PYTHON, fork], cgroup=True, pids_limit=10)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"]) == ("exited", 9)
    assert end["forks_refused"] >= 1
    assert yard.log(attempt_id).split() == [b"9"]


@needs_group
def test_cgroup_directory_removed(yard):
    """Also what the job made below its group; and the record comes before the directory."""
    group = "unified" if "unified" in PLACES else "freezer"
    attempt_id = yard.start(["/bin/sleep", "600"], cgroup=True)
    yard.wait_job(attempt_id)
    path = group_of(yard, attempt_id).paths[group]
    os.mkdir(f"{path}/below")
    with open(f"{path}/below/cgroup.procs", "w") as file:
        file.write(str(yard.journal(attempt_id).job["pid"]))
    yard.stop(attempt_id, grace_s=0)
    assert yard.wait_end(attempt_id)["cgroup_removed"]
    check_removed(yard, attempt_id)


@needs_group
@pytest.mark.parametrize("program", ["/no/such/program", "/bin/true"])
def test_group_of_a_short_or_impossible_job_is_removed(yard, program):
    attempt_id = yard.start([program], cgroup=True)
    yard.wait_end(attempt_id)
    check_removed(yard, attempt_id)


@needs_group
@pytest.mark.parametrize("step", ["limits", "forked", "job_record", "go", "main_exit"])
def test_group_is_removed_after_the_supervisors_death(yard, step):
    """By the keeper, from the recorded path."""
    attempt_id = yard.start(["/bin/true"], cgroup=True, testing={"die_after": step})
    yard.wait_end(attempt_id)
    check_removed(yard, attempt_id)


HOLD_SHARED_MEMORY = """
import mmap, os, sys, time
if os.fork():
    os.wait()
os.setsid()
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 1 << 20)
memory = mmap.mmap(fd, 1 << 20)
memory[:] = b"x" * (1 << 20)
print("ready", flush=True)
time.sleep(600)
"""


@needs_group
def test_shared_memory_is_removed_although_the_group_dies_at_once(yard):
    """By the keeper, which looks at the maps before it kills the group."""
    path = f"/dev/shm/runyard-test-{os.getpid()}-{yard.name}"
    attempt_id = yard.start_python(HOLD_SHARED_MEMORY, path, cgroup=True)
    try:
        wait_for(lambda: b"ready" in yard.log(attempt_id), "the mapping")
        os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
        assert yard.wait_end(attempt_id)["shm_bytes"] == 1 << 20
        assert not os.path.exists(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@needs_group
def test_trackers_in_a_group_clean_up(yard):
    """The resource tracker knows names that are mapped nowhere, and gets its moment."""
    code = """
from multiprocessing import shared_memory
import time
block = shared_memory.SharedMemory(create=True, size=1 << 20)
print(block.name, flush=True)
block.close()
time.sleep(600)
"""
    attempt_id = yard.start([sys.executable, "-c", code], cgroup=True)
    wait_for(lambda: b"\n" in yard.log(attempt_id), "the name of the block")
    path = f"/dev/shm/{yard.log(attempt_id).split()[0].decode().lstrip('/')}"
    assert os.path.exists(path)
    yard.stop(attempt_id, grace_s=0)
    yard.wait_end(attempt_id)
    assert not os.path.exists(path)


@needs_group
def test_group_with_strict_isolation(yard):
    """Namespaces and a group go together."""
    attempt_id, alive, _ = yard.start_shape("double_fork_daemon", cgroup=True, isolation="strict")
    yard.stop(attempt_id, grace_s=0)
    assert yard.wait_end(attempt_id)["cgroup_removed"]
    assert alive.all_dead_now()
    check_removed(yard, attempt_id)


@needs_group
def test_group_is_killed_and_removed_when_nobody_is_left(yard):
    """Supervisor and keeper died: the reconciler has the recorded path."""
    attempt_id, alive, _ = yard.start_shape("hopper_1ms", cgroup=True)
    supervisor = yard.supervisor_pid(attempt_id)
    os.kill(yard.keeper_pid(), signal.SIGKILL)
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's death")
    os.kill(supervisor, signal.SIGKILL)
    folder = yard.folder(attempt_id)
    wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
    end = wait_for(lambda: reconcile.settle(folder), "the verdict")
    assert (end["cause"], end["by"]) == ("supervisor_lost", "reconciler")
    assert alive.all_dead_now()  # a single sweep for the tag may miss one that hops
    assert end["cgroup_removed"]
    check_removed(yard, attempt_id)


@pytest.fixture
def delegated(tmp_path):
    """Runs something in a v2 group that belongs to the user without rights, as systemd's
    `Delegate=yes` with `DelegateSubgroup=` sets it up."""
    base = f"{cgroup.writable_v2()}/runyard-test-{os.urandom(6).hex()}"
    os.makedirs(f"{base}/server")
    for name in (
        "",
        "/cgroup.procs",
        "/cgroup.subtree_control",
        "/server",
        "/server/cgroup.procs",
    ):
        os.chown(base + name, UID, UID)

    def run(what):
        answer = tmp_path / "answer"
        pid = os.fork()
        if pid == 0:
            try:
                attempt_group.join((f"{base}/server",))
                answer.write_text(json.dumps(what()))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        return json.loads(answer.read_text())

    run.base = base
    yield run
    assert attempt_group.Group({"unified": base}).remove(patience_s=60)


@pytest.mark.skipif(
    os.getuid() != 0 or cgroup.writable_v2() is None, reason="needs root to delegate a v2 group"
)
@pytest.mark.parametrize("shape", ["double_fork_daemon", "tree_bomb_300", "hopper_1ms"])
def test_delegated_cgroup_plain_user(nobody, delegated, shape):
    """R55: a user without rights kills by group where a group was given to them."""
    seen = delegated(lambda: nobody.run(f"delegated-{shape}", "cancel_with_group", shape))
    assert (seen["uid"], seen["dead"]) == (UID, True)
    [path] = set(seen["group"]["paths"].values())
    assert path.startswith(f"{delegated.base}/")
    assert os.path.basename(path) in seen["joined"]
    assert (seen["end"]["cause"], seen["end"]["proof"]) == ("cancelled", "echild")
    assert seen["end"]["cgroup_removed"]
    assert not os.path.exists(path)


def supervise(yard, attempt_id, places):
    """A supervisor that finds only these places for groups, without a keeper."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.chdir(yard.data_dir)
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            host = Host(0)
            host._group_places = places
            Attempt(host, attempt_id).run()
        finally:
            os._exit(0)
    return pid


SHAPES = [
    "plain_children",
    "setsid_child",
    "double_fork_daemon",
    "daemon_empty_environment",
    "sigterm_ignorer",
    "stopped_child",
    "zombie_parent",
    "tree_bomb_300",
    "hopper_tight_x4",
    "deep_chain_200",
    "nested_subreaper",
]


@needs_group
@pytest.mark.parametrize("shape", SHAPES)
def test_group_kills_every_shape(yard, shape):
    """R41: beside the loop over direct children, which stays the proof."""
    attempt_id, alive, _ = yard.start_shape(shape, cgroup=True)
    yard.stop(attempt_id, grace_s=0)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["proof"], end["cgroup_removed"]) == ("echild", True)


# A running hopper cannot be moved into a group: it is never where it was seen.
@needs_freezer
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if "hopper" not in shape])
def test_frozen_group_kills_every_shape(yard, shape):
    """R41: as on a machine with v1 only, and without its supervisor's help."""
    attempt_id, alive, _ = yard.start_shape(shape)
    group = attempt_group.new({"freezer": cgroup.writable_v1_freezer()})
    assert group.make()
    supervisor = yard.supervisor_pid(attempt_id)
    try:
        move_all(yard, attempt_id, group)
        os.kill(supervisor, signal.SIGSTOP)  # so that its own loop does not do the work
        group.kill()
        wait_for(lambda: not group.populated(), "the group to be empty")
        alive.wait_all_dead()
        os.kill(supervisor, signal.SIGCONT)
        assert yard.wait_end(attempt_id)["signal"] == signal.SIGKILL
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGCONT)
        group.thaw()
        assert group.remove()


def move_all(yard, attempt_id, group):
    """Every process of the tree into the group; those they fork later are born in it."""
    tag = yard.specs[attempt_id]["tag"]
    path = f"{group.paths['freezer']}/cgroup.procs"

    def inside():
        outside = set(yard.tagged(tag)) - set(group.members())
        for pid in outside:
            with contextlib.suppress(OSError), open(path, "w") as file:
                file.write(str(pid))
        return not outside

    wait_for(lambda: all(inside() for _ in range(5)), "all of the tree in the group")


@pytest.fixture
def freezer_attempt(yard):
    """An attempt with a v1 freezer group, as on a machine without v2, and its supervisor."""
    places = {"freezer": cgroup.writable_v1_freezer()}
    attempt_id = yard.prepare(["/bin/sleep", "600"], cgroup=True, kill_timeout_s=0.3)
    pid = supervise(yard, attempt_id, places)
    yard.wait_job(attempt_id)
    group = group_of(yard, attempt_id)
    yield attempt_id, group, pid
    group.thaw()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


@needs_freezer
def test_stuck_frozen_v1_reported_and_thawed(yard, freezer_attempt):
    """R41: SIGKILL does nothing to a frozen process. One that froze with the death of whoever
    killed it is thawed by the next; one in a group above us, which we cannot thaw, is named."""
    attempt_id, group, supervisor = freezer_attempt
    wait_for(group.freeze, "the group to be frozen")
    os.kill(supervisor, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    folder = yard.folder(attempt_id)
    assert group.populated()  # dead already, had it not been frozen
    end = reconcile.settle(folder)
    assert (end["cause"], end["by"], end["cgroup_removed"]) == (
        "supervisor_lost",
        "reconciler",
        True,
    )
    yard.check_ended(attempt_id)


@needs_freezer
def test_frozen_by_somebody_else_is_reported_and_ends_when_thawed(yard, freezer_attempt):
    """R41: a subgroup that was frozen is thawed with the kill, so it does not get stuck."""
    attempt_id, group, _ = freezer_attempt
    below = f"{group.paths['freezer']}/below"
    os.mkdir(below)
    with open(f"{below}/cgroup.procs", "w") as file:
        file.write(str(yard.journal(attempt_id).job["pid"]))
    with open(f"{below}/freezer.state", "w") as file:
        file.write("FROZEN")
    yard.stop(attempt_id, grace_s=0)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["cgroup_removed"]) == ("cancelled", True)


@needs_group
def test_a_stranger_in_no_group_of_ours_is_not_touched(yard):
    """A recorded group of another boot, or one that is gone, leads to nobody."""
    attempt_id = yard.prepare(["/bin/sleep", "600"], cgroup=True)
    folder = yard.folder(attempt_id)
    other = attempt_group.new(PLACES)
    assert other.make()
    pid = os.fork()
    if pid == 0:
        attempt_group.join(tuple(other.directories))
        signal.pause()
    try:
        wait_for(lambda: pid in other.members(), "the stranger in its group")
        record = {"boot_id": "another", "pidns": 1, "paths": other.paths}
        journal.append(folder, "cgroup", record)
        job = {"pid": pid, "start_ticks": 1, "boot_id": "another", "pidns": 1, "started_at": 1.0}
        journal.append(folder, "job", job)
        assert reconcile.settle(folder)["cause"] == "lost_host_restart"
        assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert other.remove()


def test_supervisor_oom_adj_lower_than_job(yard):
    """When memory runs out the job is chosen, not its supervisor."""
    attempt_id = yard.start(["/bin/sleep", "600"])
    yard.wait_job(attempt_id)
    job = yard.journal(attempt_id).job["pid"]
    assert score(yard.supervisor_pid(attempt_id)) < score(job) == 500


def test_job_is_chosen_before_a_supervisor_with_a_high_score(yard):
    """The server itself may have been started with one."""
    attempt_id = yard.prepare(["/bin/sleep", "600"])
    pid = os.fork()
    if pid == 0:
        try:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("800")
            os.setsid()
            os.chdir(yard.data_dir)
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            Attempt(Host(0), attempt_id).run()
        finally:
            os._exit(0)
    yard.wait_job(attempt_id)
    assert (score(pid), score(yard.journal(attempt_id).job["pid"])) == (800, 900)
    yard.stop(attempt_id, grace_s=0)
    yard.wait_end(attempt_id)
    os.waitpid(pid, 0)


def score(pid):
    with open(f"/proc/{pid}/oom_score_adj") as file:
        return int(file.read())
