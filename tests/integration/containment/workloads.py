"""Process trees that try to get away. Run as a job: `workloads.py SHAPE`.

Every process keeps the write end of the FIFO named by ALIVE open, so end-of-file on the read end
means that all of them are dead. One byte is written once the tree stands.
"""

import ctypes
import os
import signal
import sys
import time

SLEEP_S = 600
MOST_HOPS = 5000
_libc = ctypes.CDLL(None, use_errno=True)


def open_fifo():
    fd = os.open(os.environ["ALIVE"], os.O_WRONLY)
    os.set_inheritable(fd, True)
    return fd


def fork(function, *arguments):
    pid = os.fork()
    if pid == 0:
        try:
            function(*arguments)
        finally:
            os._exit(0)
    return pid


def sleep():
    time.sleep(SLEEP_S)


def plain():
    for _ in range(3):
        fork(sleep)


def in_own_session():
    os.setsid()
    sleep()


def setsid_child():
    fork(in_own_session)


def daemonize(function):
    def first():
        os.setsid()
        fork(function)

    os.waitpid(fork(first), 0)


def double_fork_daemon():
    daemonize(sleep)


def exec_without_environment():
    os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, "just_sleep"], {})


def daemon_empty_environment():
    daemonize(exec_without_environment)
    time.sleep(0.3)


def just_sleep():
    sleep()


def undumpable():
    _libc.prctl(4, 0, 0, 0, 0)
    sleep()


def daemon_non_dumpable():
    daemonize(undumpable)


def nohup_grandchild():
    fork(os.execvp, "sh", ["sh", "-c", "nohup sleep 600 >/dev/null 2>&1 & exec sleep 600"])


def set_signals(action):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, action)


def fork_ignoring(start=fork):
    """A sleeper that ignores signals from its first moment on."""
    set_signals(signal.SIG_IGN)
    start(sleep)
    set_signals(signal.SIG_DFL)


def sigterm_ignorer():
    fork_ignoring()


def stop_itself():
    os.kill(os.getpid(), signal.SIGSTOP)
    sleep()


def stopped_child():
    pid = fork(stop_itself)
    os.waitpid(pid, os.WUNTRACED)


def with_zombies():
    for _ in range(5):
        fork(os._exit, 0)
    sleep()


def zombie_parent():
    fork(with_zombies)


def bomb(counter_path):
    """Forks every millisecond, half of the children in a session of their own."""
    for number in range(9):
        time.sleep(0.001)
        if os.path.getsize(counter_path) >= 300:
            break
        with open(counter_path, "ab", buffering=0) as file:
            file.write(b"x")
        pid = os.fork()
        if pid == 0 and number % 2:
            os.setsid()
    sleep()


def tree_bomb_300():
    path = os.path.join(os.environ["TMPDIR"], "count")
    with open(path, "wb"):
        pass
    fork(bomb, path)
    while os.path.getsize(path) < 250:
        time.sleep(0.002)


def hop(pause_s):
    """Each process forks and ends; the tree is never in one place. Below a supervisor that a test
    has stopped nobody reaps them, and the machine's process table must not fill: then it rests."""
    ends = time.monotonic() + SLEEP_S
    for _ in range(MOST_HOPS):
        if time.monotonic() >= ends:
            return
        if os.fork():
            os._exit(0)
        os.setsid()
        if pause_s:
            time.sleep(pause_s)
    sleep()


def hopper_1ms():
    fork(hop, 0.001)


def hopper_tight_x4():
    for _ in range(4):
        fork(hop, 0)


def chain(depth):
    if depth:
        fork(chain, depth - 1)
    else:
        write_ready()
    sleep()


def deep_chain_200():
    fork(chain, 200)


def clone_parent_child():
    clone, sigchld, clone_parent = 56, 17, 0x8000
    if os.uname().machine == "aarch64":
        clone = 220
    if _libc.syscall(clone, clone_parent | sigchld, 0, 0, 0, 0) == 0:
        time.sleep(SLEEP_S)
        os._exit(0)


def be_traced():
    _libc.ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    sleep()


def trace_one():
    os.waitpid(fork(be_traced), os.WUNTRACED)
    sleep()


def ptraced_child():
    fork(trace_one)
    time.sleep(0.1)


def reap_orphans():
    _libc.prctl(36, 1, 0, 0, 0)
    fork_ignoring(daemonize)
    set_signals(signal.SIG_IGN)
    sleep()


def nested_subreaper():
    fork(reap_orphans)
    time.sleep(0.1)


def closes_all_fds_then_daemonizes():
    """No descriptor is left, not even of the FIFO; the command line says who it is."""

    def close_all():
        os.closerange(0, 1 << 16)
        command = [sys.executable, "-I", "-S", __file__, "nothing_but_sleep"]
        os.execv(sys.executable, command)

    ready = os.path.join(os.environ["TMPDIR"], "ready")
    os.environ["READY"] = ready
    daemonize(close_all)
    while not os.path.exists(ready):
        time.sleep(0.002)


def nothing_but_sleep():
    # The loader and the interpreter open files of their own before this.
    os.closerange(0, 1 << 16)
    os.mkdir(os.environ["READY"])
    sleep()


def terminal_shell():
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.set_inheritable(FIFO, True)
        script = "set -m; sleep 600 & sleep 600 & echo up; sleep 600"
        os.execvp("sh", ["sh", "-ic", script])
    said = b""
    while b"up" not in said:
        said += os.read(terminal, 1024)


def leftovers():
    for _ in range(3):
        fork(sleep)
        fork_ignoring()
        daemonize(sleep)


def own_process_groups():
    for _ in range(2):
        pid = fork(sleep)
        os.setpgid(pid, pid)


def write_ready():
    os.write(FIFO, b"r")


SHAPES = {
    "plain_children": plain,
    "setsid_child": setsid_child,
    "double_fork_daemon": double_fork_daemon,
    "daemon_empty_environment": daemon_empty_environment,
    "daemon_non_dumpable": daemon_non_dumpable,
    "nohup_grandchild": nohup_grandchild,
    "sigterm_ignorer": sigterm_ignorer,
    "stopped_child": stopped_child,
    "zombie_parent": zombie_parent,
    "tree_bomb_300": tree_bomb_300,
    "hopper_1ms": hopper_1ms,
    "hopper_tight_x4": hopper_tight_x4,
    "deep_chain_200": deep_chain_200,
    "clone_parent_child": clone_parent_child,
    "ptraced_child": ptraced_child,
    "nested_subreaper": nested_subreaper,
    "closes_all_fds_then_daemonizes": closes_all_fds_then_daemonizes,
    "own_process_groups": own_process_groups,
    "terminal_shell": terminal_shell,
    "leftovers": leftovers,
}
LATER = {"just_sleep": just_sleep, "nothing_but_sleep": nothing_but_sleep}  # what shapes exec

if __name__ == "__main__":
    if sys.argv[1] in LATER:
        LATER[sys.argv[1]]()
    shape, then = sys.argv[1], sys.argv[2]
    FIFO = open_fifo()
    SHAPES[shape]()
    if shape != "deep_chain_200":
        write_ready()
    if then == "exit":
        # Leave only when told, so that the tree stands before main ends.
        go = os.open(os.environ["GO"], os.O_RDONLY)
        os.read(go, 1)
        os._exit(42)
    sleep()
