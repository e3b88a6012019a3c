"""A job in namespaces of its own (`isolation: strict`): when their init ends, the kernel ends all.

Three processes. The stand-in is outside, is what the supervisor knows as the job's main process,
and ends as the job ends. Below it the init of the PID namespace, which dies with it. Below that
the job.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from runyard.supervisor import kernel, protocol

STRICT = "strict"

_PASSED_ON = frozenset(
    (
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGCONT,
    )
)
_HEARD = _PASSED_ON | {signal.SIGCHLD, signal.SIGIO}
_EVERYBODY = -1
_STATUS_BYTES = 4
_LIMIT_REACHED = "no more namespaces are allowed (see user.max_*_namespaces of sysctl)"
_LAST = b"."  # follows the status: nothing else lives inside
_MORE = b"+"
_HANDED_OVER_S = 0.05  # where the kernel cannot tell of a death
_PATIENCE_S = 10.0  # beyond the leftover grace, which is the supervisor's to watch


def enter(plan: dict[str, Any], failure: int) -> None:
    """Returns in the job's own process only, inside. OSError: this machine does not allow it; its
    filename says what."""
    supervisor = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    _unshare_processes()
    kernel.die_with_parent(signal.SIGKILL)  # a change of credentials may have cleared it
    if os.getppid() != supervisor:
        os.kill(os.getpid(), signal.SIGKILL)
    told, tell = os.pipe()
    stands, standing = os.pipe()  # the stand-in holds `standing` for as long as it lives
    stand_in = _pidfd_of_this()
    pid = os.fork()
    if pid:
        for fd in (failure, tell, stands):
            os.close(fd)
        _stand_in(pid, told, forward=plan["term_mode"] != "all")
    os.close(told)
    os.close(standing)
    os.setsid()
    kernel.die_with_parent(signal.SIGKILL)
    if _closed(stands):
        os._exit(127)
    kernel.name_process("runyard-init")
    _make_own_places()
    pid = os.fork()
    if pid:
        os.close(failure)
        _Init(pid, plan, tell, stands, stand_in).run()
    os.close(tell)
    os.close(stands)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def obstacle() -> str:
    """Why strict isolation cannot be had here; empty when it can. Tries it in a child."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(told)
            nowhere = os.open("/dev/null", os.O_WRONLY)
            enter({"term_mode": "group"}, nowhere)
            os._exit(0)
        except OSError as error:
            os.write(tell, describe(error).encode())
        finally:
            os._exit(1)
    os.close(tell)
    with open(told, "rb") as file:
        words = file.read().decode()
    status = os.waitpid(pid, 0)[1]
    return words or ("" if status == 0 else "the trial ended early")


def describe(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}"


def _unshare_processes() -> None:
    """Whoever may, without a user namespace; else with one in which the user is itself."""
    if not kernel.available:
        raise OSError(errno.ENOSYS, "this Python has no ctypes", "namespaces")
    with _naming("PID namespace"), contextlib.suppress(PermissionError):
        kernel.unshare(kernel.CLONE_NEWPID)
        return
    user, group = os.geteuid(), os.getegid()
    with _naming("user and PID namespace"):
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
    with _naming("the user's place in a user namespace"):
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _make_own_places() -> None:
    """/proc of this namespace only; /dev/shm and System V memory that vanish with it."""
    with _naming("mount namespace"):
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC)
        # What is mounted on the machine later appears here too; nothing of ours appears there.
        kernel.mount("none", "/", "", kernel.MS_SLAVE | kernel.MS_REC)
    with _naming("own /proc"):
        kernel.mount("proc", "/proc", "proc", kernel.MS_PLAIN | kernel.MS_NOEXEC)
    with contextlib.suppress(OSError):  # its memory is then found and removed as any job's
        kernel.mount("tmpfs", "/dev/shm", "tmpfs", kernel.MS_PLAIN, "mode=1777")


@contextlib.contextmanager
def _naming(what: str) -> Iterator[None]:
    """Which step the machine refused, as the file name of the error."""
    try:
        yield
    except OSError as error:
        words = _LIMIT_REACHED if error.errno == errno.ENOSPC else error.strerror
        raise OSError(error.errno, words, what) from error


def _stand_in(init: int, told: int, *, forward: bool) -> NoReturn:
    """Pass signals on, and end exactly as the job did."""
    kernel.signal_when_readable(told)
    while True:
        number = signal.sigwaitinfo(_HEARD).si_signo
        if number in (signal.SIGCHLD, signal.SIGIO):
            dead = os.waitid(os.P_PID, init, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
            report = _read_report(told)
            if report or dead:
                break
        elif forward:
            os.kill(init, number)
    if report[_STATUS_BYTES:] != _MORE:
        os.waitpid(init, 0)
    # Without a report the init was killed, and with it the job.
    _end_as(int.from_bytes(report[:_STATUS_BYTES], "big") if report else int(signal.SIGKILL))


def _read_report(fd: int) -> bytes:
    try:
        return os.read(fd, 64)
    except BlockingIOError:
        return b""


def _end_as(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        kernel.forbid_core_dump()  # the job has left its own
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


class _Init:
    """Process 1 of the namespace: passes signals on, reaps, reports how the job ended."""

    def __init__(
        self, job: int, plan: dict[str, Any], tell: int, stands: int, stand_in: int | None
    ) -> None:
        self._job = job
        self._job_ended = False
        self._mode = plan["term_mode"]
        self._leftover_s = float(
            plan.get("leftover_grace_s", protocol.DEFAULT_LEFTOVER_GRACE_S) + _PATIENCE_S
        )
        self._tell = tell
        self._stands = stands
        self._stand_in = stand_in
        self._deadline = float("inf")

    def run(self) -> NoReturn:
        while True:
            if not self._job_ended:
                info: signal.struct_siginfo | None = signal.sigwaitinfo(_HEARD)
            else:
                left = self._deadline - time.monotonic()
                info = signal.sigtimedwait(_HEARD, max(0.0, left))
            if info is None:
                os._exit(0)
            if info.si_signo == signal.SIGCHLD:
                self._reap()
            elif info.si_signo in _PASSED_ON:
                self._pass_on(info.si_signo)

    def _pass_on(self, number: int) -> None:
        try:
            if self._job_ended:
                os.kill(_EVERYBODY, number)
            elif self._mode == "group":
                os.killpg(self._job, number)
            elif self._mode == "main":
                os.kill(self._job, number)
        except (ProcessLookupError, PermissionError):
            pass

    def _reap(self) -> None:
        status = None
        empty = False
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._job and not self._job_ended:
                    self._job_ended = True
                    status = found[1]
        except ChildProcessError:
            empty = True
        if status is not None:
            self._report(status, last=empty)
        if empty:
            os._exit(0)

    def _report(self, status: int, *, last: bool) -> None:
        """With others still alive, the stand-in leaves first, so that the job's end is on record
        while they are given their time; the supervisor is our parent then."""
        if not last:
            kernel.die_with_parent(0)
        os.write(self._tell, status.to_bytes(_STATUS_BYTES, "big") + (_LAST if last else _MORE))
        if not last:
            os.read(self._stands, 1)
            _await_death(self._stand_in)
            kernel.die_with_parent(signal.SIGKILL)
            self._deadline = time.monotonic() + self._leftover_s


def _pidfd_of_this() -> int | None:
    try:
        return os.pidfd_open(os.getpid())
    except OSError:
        return None


def _await_death(pidfd: int | None) -> None:
    """Until its children have their new parent. A dying process closes its pipes before that, and
    who asks in between to die with his parent is killed by the death of the old one."""
    if pidfd is None:
        time.sleep(_HANDED_OVER_S)
        return
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.poll()
    os.close(pidfd)


def _closed(fd: int) -> bool:
    """Whether the other end of a pipe that nobody writes to is gone."""
    os.set_blocking(fd, False)
    try:
        return os.read(fd, 1) == b""
    except BlockingIOError:
        return False
    finally:
        os.set_blocking(fd, True)


def _write(path: str, words: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, words.encode())
    finally:
        os.close(fd)
