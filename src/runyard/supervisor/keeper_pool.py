"""The keeper's supervisors: a few idle ones kept warm, the rest busy with one attempt each."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections import deque

from runyard.supervisor import supervisor
from runyard.supervisor.host import SIGNALS

IDLE_KEPT = 2  # made ready ahead
IDLE_MOST = 4  # more than these are sent home when they come back


class Member:
    __slots__ = ("attempt_id", "channel", "pid")

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self.channel = channel
        self.attempt_id: str | None = None


class Pool:
    __slots__ = ("by_fd", "by_pid", "idle")

    def __init__(self) -> None:
        self.by_pid: dict[int, Member] = {}
        self.by_fd: dict[int, Member] = {}
        self.idle: deque[Member] = deque()

    def fork(self) -> Member:
        """A new idle supervisor."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keeper_pid = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        pid = os.fork()
        if pid == 0:
            _become_supervisor(theirs, keeper_pid)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        member = Member(pid, ours)
        self.by_pid[pid] = member
        self.by_fd[ours.fileno()] = member
        self.idle.append(member)
        return member

    def hand_over(self, attempt_id: str) -> Member | None:
        """Give the attempt to an idle supervisor; None if none is left."""
        while self.idle:
            member = self.idle.popleft()
            try:
                member.channel.send(attempt_id.encode())
            except OSError:
                continue  # it died while idle; its death is dealt with where deaths are
            member.attempt_id = attempt_id
            return member
        return None

    def came_back(self, member: Member) -> None:
        member.attempt_id = None
        if len(self.idle) >= IDLE_MOST:
            self.dismiss(member)
        else:
            self.idle.append(member)

    def dismiss(self, member: Member) -> None:
        """It ends when its channel closes; it stays known until it is reaped."""
        if member.channel.fileno() >= 0:
            self.by_fd.pop(member.channel.fileno(), None)
            member.channel.close()
        if member in self.idle:
            self.idle.remove(member)

    def forget(self, member: Member) -> None:
        self.dismiss(member)
        self.by_pid.pop(member.pid, None)

    def busy(self) -> dict[str, int]:
        return {m.attempt_id: m.pid for m in self.by_pid.values() if m.attempt_id is not None}


def _become_supervisor(channel: socket.socket, keeper_pid: int) -> None:
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        own = channel.fileno()
        os.closerange(3, own)
        os.closerange(own + 1, 1 << 20)
        supervisor.serve(channel, keeper_pid)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)
