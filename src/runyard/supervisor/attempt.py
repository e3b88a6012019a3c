"""One attempt, from the hand-over to its exit record."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from runyard.supervisor import (
    end_record,
    ending,
    gang,
    gang_rule,
    gpu_locks,
    journal,
    kernel,
    limits,
    liveness,
    log_bound,
    port_binding,
    protocol,
    services,
    stop_request,
    stopping,
    terminal,
)
from runyard.supervisor.attempt_group import Group
from runyard.supervisor.child import Child
from runyard.supervisor.host import SIGNALS, Host

_NEVER = float("inf")
_JOURNAL_RESERVE = 16 * 1024  # so that the end can be recorded on a full disk
_RANK_RESERVE = 1024  # the same, for each of several ranks


class Attempt:
    """Owns the processes of one attempt. Used once, by `run`."""

    def __init__(self, host: Host, attempt_id: str) -> None:
        self.host = host
        self.attempt_id = attempt_id
        self.folder = f"{protocol.ATTEMPTS}/{attempt_id}"
        self.spec: dict[str, Any] = {}
        self.die_after = ""
        self.mains: dict[int, int] = {}  # pid -> rank of those that are not reaped yet
        self.gang: gang.Gang | None = None  # of several ranks
        self.started_at: float | None = None
        self.started_clock = 0.0
        self.log_fd = -1  # opened when first needed
        self.gpu_fds: list[int] = []
        self.group: Group | None = None
        self.limits = limits.Limits({})
        self.terminal: terminal.Terminal | None = None
        self.services: services.Services | None = None
        self.stop: stopping.Stopping | None = None
        self.stop_seq = 0
        self.terminated = False
        self.next_beat = 0.0
        self.end = end_record.EndRecord(self)

    def run(self) -> None:
        path = f"{self.folder}/{protocol.JOURNAL}"
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            # Somebody else's lock: this attempt was handed over twice, and once is enough.
            if liveness.hold(fd):
                self.journal = journal.Appender(fd)
                self._run_locked()
        finally:
            for gpu_fd in self.gpu_fds:
                os.close(gpu_fd)
            if self.log_fd >= 0:
                os.close(self.log_fd)
            if self.terminal is not None:
                self.terminal.close()
            if self.services is not None:
                self.services.close()
            os.close(fd)
            del self.end.attempt  # the collector is off: leave no cycle behind

    def _run_locked(self) -> None:
        spec = self.journal.refresh().spec
        if spec is None:
            self.end.write_unstarted("never_started", {"message": "the journal has no spec"})
            return
        self.spec = spec
        self.die_after = spec.get("testing", {}).get("die_after", "")
        self.reached("locked")
        try:
            if not self.journal.append("supervisor", self.host.identity, once=True):
                return  # it has ended, or an earlier supervisor had it and others will end it
        except OSError as error:
            self.end.write_unstarted(*end_record.unrecordable(error))
            return
        self.reached("supervisor_record")
        request = stop_request.read(self.folder)
        if request is not None:
            self.stop = stopping.Stopping(request)
            self.end.write_unstarted("cancelled_before_start", {})
            return
        refusal = self._prepare() or self._start_services() or self._start()
        if refusal is not None:
            if self.mains or (
                self.services is not None and self.journal.journal.first_process is not None
            ):
                ending.end_tree(self)
            self.end.write_unstarted(*refusal)
            return
        self._watch()
        ending.end_tree(self)
        self.reached("tree_empty")
        if self.terminal is not None:
            self.terminal.finish()
        self.end.write()

    def _prepare(self) -> tuple[str, dict[str, Any]] | None:
        """Locks and directories; the cause and its detail if the job cannot start."""
        locked = gpu_locks.take(self.spec.get("gpu_locks", ()), self.gpu_fds)
        if locked is not None:
            return "gpu_locked", locked
        taken = port_binding.taken(self.spec.get("ports", ()))
        if taken:
            node = os.uname().nodename
            refused = [{"slice": 0, "node": node, "port": port} for port in taken]
            return "port_taken", {"port": taken[0], "node": node, "refused": refused}
        step, path = "make_dirs", f"{self.folder}/{protocol.TEMPORARY}"
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o700)
            for path in self.spec.get("make_dirs", ()):
                os.makedirs(path, exist_ok=True)
            if self.spec.get("tty"):
                step, path = "tty", f"{self.folder}/{protocol.LOG}"
                self.terminal = terminal.Terminal(path, self.spec["env"])
        except OSError as error:
            return "start_failed", {
                "step": step,
                "path": path,
                "errno": error.errno,
                "message": error.strerror,
            }
        self.limits = limits.Limits(self.spec)
        self.group = self.limits.impose(self)
        self.reached("limits")
        return None

    def _start_services(self) -> tuple[str, dict[str, Any]] | None:
        """Until all are ready; the cause and its detail if the job cannot start."""
        if not self.spec.get("services"):
            return None
        self.services = services.Services(self.spec["services"])
        return self.services.start(self)

    def _start(self) -> tuple[str, dict[str, Any]] | None:
        """Identity, then go; the cause and its detail if the program cannot be executed."""
        if self.spec.get("ranks"):
            return self._start_gang()
        child = self.host.take_child()
        self.reached("forked")
        self.started_at = time.time()
        self.started_clock = time.monotonic()
        try:
            self.journal.append("job", self.identity_of(child))
        except OSError as error:
            child.discard()
            return end_record.unrecordable(error)
        self.mains[child.pid] = 0
        self.reached("job_record")
        child.release(self.plan())
        self.reached("go")
        kernel.reserve(self.journal.fd, _JOURNAL_RESERVE)
        failure = child.await_exec()
        if failure is not None:
            os.waitpid(child.pid, 0)
            self.mains.clear()
            self.started_at = None
            return end_record.cause_of_failure(failure), failure
        self.limits.check(self)
        self.host.news.send("started", self.attempt_id, started_at=self.started_at, pid=child.pid)
        return None

    def _start_gang(self) -> tuple[str, dict[str, Any]] | None:
        self.gang = gang.Gang(self.spec["ranks"])
        refusal = self.gang.start(self)
        if refusal is None:
            reserve = _JOURNAL_RESERVE + _RANK_RESERVE * len(self.gang.ranks)
            kernel.reserve(self.journal.fd, reserve)
            self.limits.check(self)
            self.host.news.send("started", self.attempt_id, started_at=self.started_at)
        return refusal

    def identity_of(self, child: Child) -> dict[str, Any]:
        return {
            "pid": child.pid,
            "start_ticks": child.start_ticks,
            "pidfd_ino": child.pidfd_ino,
            "sid": child.pid,
            **self.host.job_identity,
            "started_at": self.started_at,
        }

    def plan(self) -> dict[str, Any]:
        """What the main process is told; a service's plan differs in a few fields only."""
        spec = self.spec
        return {
            "tag": spec["tag"],
            "argv": spec["argv"],
            "env": self._environment(),
            "cwd": spec["cwd"],
            "log": f"{self.folder}/{protocol.LOG}",
            "nice": spec.get("nice", 0),
            "cpus": spec.get("cpus") or (),
            "cgroup": self.group.directories if self.group is not None else (),
            "no_new_privs": spec.get("no_new_privs", True),
            "isolation": spec.get("isolation", "none"),
            "term_mode": spec.get("term_mode", "group"),
            "leftover_grace_s": self.leftover_grace_s,
            "terminal": self.terminal.path if self.terminal is not None else "",
        }

    def _environment(self) -> dict[str, str]:
        given: dict[str, str] = self.spec["env"]
        return given if self.terminal is None else {"TERM": terminal.TERM, **given}

    def _watch(self) -> None:
        """Until the main process, or all ranks, have ended or have to be ended."""
        timeout_s = self.spec.get("timeout_s")
        limit = self.started_clock + timeout_s if timeout_s else _NEVER
        self.next_beat = self.started_clock + protocol.HEARTBEAT_S
        while not ending.main_ended(self):
            now = time.monotonic()
            if self.stop is not None and now >= self.stop.deadline:
                return
            if now >= limit and self.stop is None:
                self.begin_stop(stopping.own_request("timeout", self.grace_s))
                continue
            if now >= self.next_beat:
                self.beat(now)
            next_step = _NEVER if self.services is None else self.services.step(self, now)
            if self.gang is not None:
                next_step = min(next_step, self.gang.step(self, now))
            over = limit if self.stop is None else self.stop.deadline
            due = min(self.next_beat, over, next_step)
            self.hear(signal.sigtimedwait(SIGNALS, max(0.0, due - time.monotonic())))

    @property
    def grace_s(self) -> float:
        return float(self.spec.get("grace_s", protocol.DEFAULT_GRACE_S))

    @property
    def leftover_grace_s(self) -> float:
        return float(self.spec.get("leftover_grace_s", protocol.DEFAULT_LEFTOVER_GRACE_S))

    @property
    def kill_timeout_s(self) -> float:
        return float(self.spec.get("kill_timeout_s", protocol.DEFAULT_KILL_TIMEOUT_S))

    def hear(self, info: signal.struct_siginfo | None) -> None:
        if info is None or info.si_signo == signal.SIGCHLD:
            return
        if info.si_signo == signal.SIGIO:
            self.copy_output()
        elif info.si_signo == signal.SIGUSR1:
            self.look_for_stop()
        elif info.si_signo == signal.SIGTERM:
            grace = 0.0 if self.terminated else self.grace_s
            self.terminated = True
            self.begin_stop(stopping.own_request("supervisor_term", grace))

    def look_for_stop(self) -> None:
        request = stop_request.read(self.folder)
        if request is not None and request["seq"] > self.stop_seq:
            self.stop_seq = request["seq"]
            self.begin_stop(request)

    def begin_stop(self, request: stop_request.Request) -> None:
        if self.stop is None:
            self.stop = stopping.Stopping(request)
            self.stop.begin(self)
            # Of all others the server knows; a gang told of its first failure when it happened.
            if request["seq"] == stopping.OWN_SEQ and request["cause"] != gang_rule.FAILED:
                self._tell_stopping(request)
        else:
            self.stop.shorten(self, request)

    def _tell_stopping(self, request: stop_request.Request) -> None:
        self.host.news.send(
            "stopping", self.attempt_id, cause=request["cause"], grace_s=request["grace_s"]
        )

    def beat(self, now: float) -> None:
        """Every few seconds: say that we are not hung, look for a stop request, bound the log."""
        self.next_beat = now + protocol.HEARTBEAT_S
        path = f"{self.folder}/{protocol.HEARTBEAT}"
        with contextlib.suppress(OSError):  # a full disk, a folder that was removed
            try:
                os.utime(path)
            except FileNotFoundError:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self.host.news.flush()
        self.look_for_stop()
        self.limits.watch(self)
        self.copy_output()
        log_bound.bound(self)
        if self.services is not None:
            self.services.bound_logs(self)
        if self.gang is not None:
            self.gang.bound_logs(self)

    def copy_output(self) -> None:
        """Of a job with a terminal; other signals come before the next turn of a flood."""
        if self.terminal is not None and self.terminal.copy():
            os.kill(os.getpid(), signal.SIGIO)

    def open_log(self) -> int:
        """Our own descriptor of the log; not O_APPEND, so that it can write anywhere."""
        if self.log_fd < 0:
            with contextlib.suppress(OSError):
                self.log_fd = os.open(f"{self.folder}/{protocol.LOG}", os.O_RDWR | os.O_CLOEXEC)
        return self.log_fd

    def log_bytes(self) -> int:
        try:
            return os.stat(f"{self.folder}/{protocol.LOG}").st_size
        except OSError:
            return 0

    def reached(self, step: str) -> None:
        """Tests make the supervisor die right after a step."""
        if step == self.die_after:
            os.kill(os.getpid(), signal.SIGKILL)
