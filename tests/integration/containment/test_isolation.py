"""Strict isolation: the job in namespaces of its own, which the kernel ends as one."""

import errno
import json
import os
import random
import signal
import subprocess
import sys

import pytest
from isolated_run import LOOK
from keeper_yard import HERE, wait_for
from without_rights import UID, nobody  # noqa: F401 (a fixture)

import runyard.supervisor
from runyard.supervisor import keeper_client, liveness, namespace, process_table, reconcile

SOURCE = os.path.abspath(f"{os.path.dirname(runyard.supervisor.__file__)}/../..")
SHAPES = [
    "setsid_child",
    "double_fork_daemon",
    "daemon_empty_environment",
    "sigterm_ignorer",
    "stopped_child",
    "tree_bomb_300",
    "nested_subreaper",
]


@pytest.fixture(scope="module", autouse=True)
def possible():
    found = namespace.obstacle()
    if found:
        pytest.skip(f"no strict isolation here: {found}")


def strict_python(yard, code, **fields):
    return yard.start_python(code, isolation="strict", **fields)


def test_strict_namespace_job(yard):
    """R41: it sees itself only, and its shared memory is its own."""
    attempt_id = strict_python(yard, LOOK)
    end = yard.wait_end(attempt_id)
    assert (end["code"], end["cause"], end["proof"]) == (0, "exited", "echild")
    check_alone(json.loads(yard.log(attempt_id)), os.getuid())


def check_alone(seen, uid):
    assert seen["pid"] == seen["sid"] == seen["group"] == 2
    assert seen["seen"] == [1, 2]
    assert seen["uid"] == uid
    assert seen["shm"] != os.stat("/dev/shm").st_dev
    assert seen["pidns"] != os.readlink("/proc/self/ns/pid")


@pytest.mark.parametrize("code", [0, 1, 42, 137, 255])
def test_strict_exit_codes_kept(yard, code):
    end = yard.wait_end(strict_python(yard, f"import os; os._exit({code})"))
    assert (end["code"], end["signal"], end["cause"]) == (code, None, "exited")


@pytest.mark.parametrize("name", ["SEGV", "ABRT", "KILL", "TERM", "USR1", "HUP", "RTMIN"])
def test_strict_exit_codes_and_signals_kept(yard, name):
    """Also a KILL from inside, and one that the stand-in itself would pass on."""
    number = int(getattr(signal, f"SIG{name}"))
    end = yard.wait_end(strict_python(yard, f"import os; os.kill(os.getpid(), {number})"))
    assert (end["code"], end["signal"]) == (None, number)


@pytest.mark.parametrize(
    ("argv", "cwd", "cause"),
    [(["/no/such"], "/", "exec_failed"), (["/bin/true"], "/no/such", "cwd_missing")],
)
def test_strict_job_that_cannot_start(yard, argv, cwd, cause):
    """Told as without isolation, and nothing of the namespace stays."""
    attempt_id = yard.start(argv, cwd=cwd, isolation="strict")
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"], end["errno"]) == (cause, None, errno.ENOENT)
    assert yard.wait_end(strict_python(yard, "import os; os._exit(5)"))["code"] == 5


@pytest.mark.parametrize("shape", SHAPES)
def test_strict_cancel_leaves_nothing(yard, shape):
    """R41"""
    attempt_id, alive, _ = yard.start_shape(shape, isolation="strict")
    yard.stop(attempt_id, grace_s=0.2)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["cause"], end["by"], end["proof"]) == ("cancelled", "supervisor", "echild")


@pytest.mark.parametrize("shape", SHAPES)
def test_strict_main_exits_leftovers_ended(yard, shape):
    """The code is on record before what is left has had its time."""
    attempt_id, alive, go = yard.start_shape(shape, "exit", isolation="strict")
    with open(go, "wb") as file:
        file.write(b"g")
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["code"], end["cause"], end["proof"]) == (42, "exited", "echild")


LEAVES_ONE = """
import os, signal, sys, time
told, tell = os.pipe()
if os.fork() == 0:
    def tidy(*_):
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        print("tidied", flush=True)
        os._exit(0)
    signal.signal(signal.SIGTERM, tidy)
    os.write(tell, b"r")
    while True:
        time.sleep(0.01)
os.read(told, 1)
os._exit(9)
"""


def test_strict_leftovers_are_told_first(yard):
    """They have the leftover grace; how the main process ended is on record meanwhile."""
    go_on = f"{yard.data_dir}/go_on"
    command = [sys.executable, "-I", "-S", "-c", LEAVES_ONE, go_on]
    attempt_id = yard.start(command, isolation="strict", leftover_grace_s=60.0)
    assert wait_for(lambda: yard.journal(attempt_id).main_exit, "main")["code"] == 9
    assert yard.journal(attempt_id).exit is None
    with open(go_on, "wb"):
        pass
    assert yard.wait_end(attempt_id)["code"] == 9
    assert yard.log(attempt_id) == b"tidied\n"


@pytest.mark.parametrize("shape", SHAPES)
def test_strict_supervisor_killed_everything_dies(yard, shape):
    """R41: by the kernel alone, whatever the processes did to be forgotten: the keeper is dead."""
    attempt_id, alive, _ = yard.start_shape(shape, isolation="strict")
    supervisor = yard.supervisor_pid(attempt_id)
    os.kill(yard.keeper_pid(), signal.SIGKILL)
    wait_for(lambda: not keeper_client.keeper_locked(yard.data_dir), "the keeper's death")
    os.kill(supervisor, signal.SIGKILL)
    alive.wait_all_dead()
    folder = yard.folder(attempt_id)
    wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
    reconcile.settle(folder)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"]) == ("supervisor_lost", None)


def test_strict_supervisor_killed_keeper_records(yard):
    attempt_id, alive, _ = yard.start_shape("double_fork_daemon", isolation="strict")
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["cause"], end["by"], end["code"]) == ("supervisor_lost", "keeper", None)


@pytest.mark.parametrize("victim", ["stand-in", "init", "job"])
def test_strict_any_of_the_three_killed(yard, victim):
    """R41: whoever is killed from outside, all of it ends, and is told as killed."""
    attempt_id, alive, _ = yard.start_shape("double_fork_daemon", isolation="strict")
    stand_in = yard.journal(attempt_id).job["pid"]
    [init] = process_table.children(stand_in)
    [job] = [pid for pid in process_table.children(init) if os.getsid(pid) == pid]
    os.kill({"stand-in": stand_in, "init": init, "job": job}[victim], signal.SIGKILL)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["signal"], end["killed_externally"]) == (9, True)


TIDY = """
import os, signal, sys, time
def tidy(*_):
    print("told", flush=True)
    time.sleep(0.4)
    print("saved", flush=True)
    os._exit(7)
signal.signal(signal.SIGTERM, tidy)
print("up", flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("mode", ["group", "main", "all"])
def test_strict_grace_respected(yard, mode):
    """The job is told once, has its time, and its own exit code is kept."""
    attempt_id = strict_python(yard, TIDY, term_mode=mode)
    wait_for(lambda: b"up" in yard.log(attempt_id), "the job")
    yard.stop(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"], end["signal"]) == ("cancelled", 7, None)
    assert yard.log(attempt_id).split() == [b"up", b"told", b"saved"]


def test_strict_grace_reaches_python_behind_shell(yard):
    command = '"$0" -I -S -c "$1"; echo code $?'
    attempt_id = yard.start(
        ["/bin/sh", "-c", f"trap '' TERM; {command}", sys.executable, TIDY], isolation="strict"
    )
    wait_for(lambda: b"up" in yard.log(attempt_id), "the job")
    yard.stop(attempt_id)
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["code"]) == ("cancelled", 0)
    assert yard.log(attempt_id).split() == [b"up", b"told", b"saved", b"code", b"7"]


def test_strict_second_stop_does_not_wait(yard):
    attempt_id, alive, _ = yard.start_shape("sigterm_ignorer", isolation="strict")
    yard.stop(attempt_id, grace_s=600.0)
    yard.stop(attempt_id, seq=2, grace_s=0.0)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert end["cause"] == "cancelled"


def test_strict_shared_memory_vanishes(yard):
    """Also System V segments; and a stranger's object of the same name stays."""
    name = f"/dev/shm/{yard.name}"
    size = random.randrange(1 << 12, 1 << 24)  # tells its segment from those of others
    code = f"""
import ctypes, mmap, os
file = open({name!r}, "w+b")
file.truncate(4096)
shared = mmap.mmap(file.fileno(), 4096)
print(ctypes.CDLL(None).shmget(0, {size}, 0o1600) >= 0, flush=True)
os.kill(os.getpid(), 9)
"""
    with open(name, "wb") as file:
        file.write(b"mine")
    try:
        attempt_id = strict_python(yard, code)
        assert yard.wait_end(attempt_id)["signal"] == 9
        assert yard.log(attempt_id) == b"True\n"
        with open(name, "rb") as file:
            assert file.read() == b"mine"
    finally:
        os.unlink(name)
    with open("/proc/sysvipc/shm") as file:
        assert str(size) not in [line.split()[3] for line in file]


def test_strict_with_a_terminal(yard):
    attempt_id = strict_python(yard, "import sys; print(sys.stdout.isatty())", tty=True)
    assert yard.wait_end(attempt_id)["code"] == 0
    assert yard.log(attempt_id) == b"True\n"


def test_strict_as_plain_user(nobody):  # noqa: F811
    """R41, R55: in a user namespace, as nobody but itself."""
    cases = ("look", "exits", "aborts", "cancelled", "supervisor_dies")
    command = [nobody.python, "-B", f"{nobody.place}/tests/isolated_run.py"]
    command.append(f"{nobody.place}/yards/isolated")
    told = run_cases(command, cases, f"{nobody.place}/source", **nobody.becoming)
    check_alone(json.loads(told["look"]["log"]), UID)
    ends = {name: case["end"] for name, case in told.items()}
    assert (ends["look"]["code"], ends["look"]["proof"]) == (0, "echild")
    assert (ends["exits"]["code"], ends["aborts"]["signal"]) == (42, signal.SIGABRT)
    assert ends["cancelled"]["cause"] == "cancelled"
    assert (ends["supervisor_dies"]["cause"], ends["supervisor_dies"]["code"]) == (
        "supervisor_lost",
        None,
    )
    assert told["cancelled"]["dead"]
    assert told["supervisor_dies"]["dead"]


@pytest.mark.parametrize(
    ("kind", "missing"), [("pid", "PID namespace"), ("mnt", "mount namespace")]
)
def test_strict_unavailable_is_explained(tmp_path, kind, missing):
    """R55: refused with what is missing; the same supervisor runs other jobs."""
    script = f'echo 0 > /proc/sys/user/max_{kind}_namespaces; exec "$@"'
    within = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"]
    command = [*within, sys.executable, "-B", f"{HERE}/isolated_run.py", str(tmp_path)]
    told = run_cases(command, ("look", "plain"), SOURCE)
    end = told["look"]["end"]
    assert (end["cause"], end["code"], end["started_at"]) == ("isolation_unavailable", None, None)
    assert (end["path"], end["errno"]) == (missing, errno.ENOSPC)
    assert "no more namespaces are allowed" in end["message"]
    assert told["look"]["log"] == ""
    assert told["plain"]["end"]["code"] == 42


def run_cases(command, cases, source, **becoming):
    done = subprocess.run(
        [*command, *cases],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": source},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        **becoming,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
