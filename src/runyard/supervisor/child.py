"""The child that becomes the job's main process: forked ahead, it waits for its plan, then execs.

It inherits nothing of the supervisor but 0, 1 and 2, dies with the supervisor, and ends itself if
the plan never comes.
"""

from __future__ import annotations

import errno
import marshal
import os
import signal
import sys
from typing import Any, NoReturn

from runyard.supervisor import attempt_group, identity, kernel, namespace, protocol

_LENGTH_BYTES = 4
_DESCRIPTOR_LIMIT = min(os.sysconf("SC_OPEN_MAX"), 1 << 20)


class Child:
    """The supervisor's end: identity, the pipe that says go, the pipe that tells of failure."""

    __slots__ = ("failure", "go", "pid", "pidfd_ino", "start_ticks")

    def __init__(self, pid: int, go: int, failure: int) -> None:
        self.pid = pid
        self.go = go
        self.failure = failure
        self.start_ticks = identity.start_ticks(pid)
        self.pidfd_ino = identity.pidfd_inode(pid)

    def alive(self) -> bool:
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self.pid, flags) is None

    def release(self, plan: dict[str, Any]) -> None:
        """Say go. The caller has recorded the child's identity before."""
        body = marshal.dumps(plan)
        view = memoryview(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        try:
            while view:
                view = view[os.write(self.go, view) :]
        except BrokenPipeError:
            pass  # it was killed; its exit status tells
        finally:
            os.close(self.go)

    def await_exec(self) -> dict[str, Any] | None:
        """None once the program runs, else why it does not."""
        try:
            data = b""
            while chunk := os.read(self.failure, 65536):
                data += chunk
        finally:
            os.close(self.failure)
        return marshal.loads(data) if data else None

    def discard(self) -> None:
        """The child is dead or not needed: close its pipes, which ends it, and reap it."""
        os.close(self.go)
        os.close(self.failure)
        os.waitpid(self.pid, 0)


def fork_child() -> Child:
    plan_read, plan_write = os.pipe()
    failure_read, failure_write = os.pipe()
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _prepare(supervisor, plan_read, failure_write)
            _become_job(plan_read, failure_write)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            _vanish()
    os.close(plan_read)
    os.close(failure_write)
    return Child(pid, plan_write, failure_read)


def _prepare(supervisor: int, plan: int, failure: int) -> None:
    """What every job needs, whatever its plan says. Memory this touches is copied for every job,
    so it does little: all other signals have had their default action since the keeper began."""
    _close_all_but(plan, failure)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.setsid()
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != supervisor:
        _vanish()
    # Last, so that a stray signal to a process not yet in its own session cannot hit it.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _be_chosen_before_the_supervisor()


def _be_chosen_before_the_supervisor() -> None:
    """When memory runs out; the supervisor may have been started with a high score itself."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        own = int(os.read(fd, 16))
        os.pwrite(fd, b"%d" % min(1000, max(protocol.OOM_SCORE_ADJ, own + 100)), 0)
        os.close(fd)
    except OSError:
        pass  # /proc is restricted


def _become_job(plan_fd: int, failure: int) -> NoReturn:
    plan = _read_plan(plan_fd)
    kernel.set_tag(plan["tag"])
    attempt_group.join(plan["cgroup"])
    step, path = "isolation", ""
    try:
        if plan["isolation"] == namespace.STRICT:
            namespace.enter(plan, failure)
        step, path = "log", plan["terminal"] or plan["log"]
        # A terminal must not become the controlling one: who asks there for a password shall
        # fail, not wait for ever.
        flags = os.O_NOCTTY if plan["terminal"] else os.O_APPEND | os.O_CREAT
        log = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if plan["no_new_privs"]:
            kernel.no_new_privileges()
        if plan["nice"]:
            step, path = "nice", ""
            os.nice(plan["nice"])
        if plan["cpus"]:
            step, path = "cpus", ",".join(map(str, plan["cpus"]))
            os.sched_setaffinity(0, plan["cpus"])
        step, path = "cwd", plan["cwd"]
        os.chdir(path)
        step, path = "exec", plan["argv"][0]
        _execute(plan["argv"], plan["env"])
    except BaseException as error:
        _report(failure, step, path, error)
    _vanish()


def _execute(argv: list[str], environment: dict[str, str]) -> None:
    """By the job's own PATH; a name with a slash is taken as it is."""
    if "/" in argv[0]:
        os.execve(argv[0], argv, environment)
    os.execvpe(argv[0], argv, environment)


def _read_plan(fd: int) -> dict[str, Any]:
    data = bytearray()
    while chunk := os.read(fd, 65536):
        data += chunk
    body = bytes(data[_LENGTH_BYTES:])
    if not body or len(body) != int.from_bytes(data[:_LENGTH_BYTES], "big"):
        _vanish()
    return marshal.loads(body)  # type: ignore[no-any-return]


def _vanish() -> NoReturn:
    """An exit code would be taken for the job's own by whoever reaps this instead of a dead
    supervisor."""
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(127)


def _report(failure: int, step: str, path: str, error: BaseException) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    number = error.errno if isinstance(error, OSError) else None
    message = os.strerror(number) if number else str(error)
    if step == "isolation" and isinstance(error, OSError):
        path, message = str(error.filename), str(error.strerror)
    if step == "exec" and number == errno.ENOENT and os.path.isfile(path):
        message = "its interpreter does not exist"
    os.write(
        failure,
        marshal.dumps({"step": step, "path": path, "errno": number, "message": message}),
    )


def _close_all_but(first: int, second: int) -> None:
    low, high = (first, second) if first < second else (second, first)
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, _DESCRIPTOR_LIMIT)
