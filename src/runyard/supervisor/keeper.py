"""The keeper: forks supervisors, hands them attempts, and takes over when one of them dies.

One thread, one process per generation and data directory, a subreaper above all supervisors.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import struct
from typing import Any

from runyard.supervisor import end_record, journal, kernel, news, protocol, rehearsal, takeover
from runyard.supervisor.keeper_pool import IDLE_KEPT, Member, Pool

_REFILL_AFTER_S = 0.02  # quiet time before new supervisors are forked ahead
_SHRINK_AFTER_S = 10.0
_BACKLOG = 64


class Keeper:
    def __init__(self, listener: socket.socket, generation: str, alone_s: float) -> None:
        self.generation = generation
        self._alone_s = alone_s
        self.pool = Pool()
        self.news = news.NewsSender()
        self.takeovers = takeover.Takeovers(self.pool, self.news)
        self._listener = listener
        self._clients: dict[int, socket.socket] = {}
        self._poll = select.epoll()
        self._leaving = False
        self._signals, writer = socket.socketpair()
        self._signals.setblocking(False)
        writer.setblocking(False)
        self._writer = writer
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for fd in (listener.fileno(), self._signals.fileno()):
            self._poll.register(fd, select.EPOLLIN)

    def fill(self) -> None:
        """Make idle supervisors ahead of need."""
        while not self._leaving and len(self.pool.idle) < IDLE_KEPT:
            self._fork()

    def run(self) -> None:
        """Until there is nothing left to keep after being asked to leave."""
        while not (self._leaving and self._nothing_left()):
            ready = self._poll.poll(self._timeout())
            for fd, _ in ready:
                self._serve(fd)
            if self.takeovers.pending:
                self.takeovers.step()
            elif not ready:
                self._use_quiet_time()

    def _timeout(self) -> float | None:
        if self.takeovers.pending:
            return self.takeovers.pause()
        if not self._leaving and len(self.pool.idle) < IDLE_KEPT:
            return _REFILL_AFTER_S
        if len(self.pool.idle) > IDLE_KEPT or self.news.unsent:
            return _SHRINK_AFTER_S
        return self._alone_s if self._alone() else None

    def _alone(self) -> bool:
        """No server is connected and nothing runs: whoever comes next can start a keeper."""
        return not self._clients and self._nothing_left()

    def _use_quiet_time(self) -> None:
        self.news.flush()
        if len(self.pool.idle) > IDLE_KEPT:
            self._dismiss(self.pool.idle[0])
        elif len(self.pool.idle) < IDLE_KEPT:
            self.fill()
        elif self._alone():
            self._leave()

    def _nothing_left(self) -> bool:
        return not self.pool.busy() and not self.takeovers.pending

    def _serve(self, fd: int) -> None:
        if fd == self._listener.fileno():
            self._accept()
        elif fd == self._signals.fileno():
            self._hear_signals()
        elif fd in self._clients:
            self._hear_client(self._clients[fd])
        elif fd in self.pool.by_fd:
            self._hear_supervisor(self.pool.by_fd[fd])

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, uid, _ = struct.unpack("iII", credentials)
        if uid != os.getuid():
            client.close()
            return
        client.setblocking(False)  # one that does not read its answers is dropped
        self._clients[client.fileno()] = client
        self._poll.register(client.fileno(), select.EPOLLIN)

    def _hear_client(self, client: socket.socket) -> None:
        """Everything a client has sent: starts can be sent many at a time."""
        try:
            while message := client.recv(4096):
                answer = self._obey(message)
                if answer is not None and not _answer(client, answer):
                    break
        except BlockingIOError:
            return
        except OSError:
            pass
        self._poll.unregister(client.fileno())
        del self._clients[client.fileno()]
        client.close()

    def _obey(self, message: bytes) -> dict[str, Any] | None:
        verb, _, argument = message.decode("utf-8", "replace").partition(" ")
        if verb == "run":
            self._run(argument)
            return None
        if verb == "hello":
            return self._describe()
        if verb == "list":
            return {"attempts": self.pool.busy(), "takeovers": self.takeovers.attempt_ids()}
        if verb == "leave":
            self._leave()
            return self._describe()
        return {"error": f"unknown request {verb!r}"}

    def _describe(self) -> dict[str, Any]:
        return {
            "v": protocol.VERSION,
            "generation": self.generation,
            "pid": os.getpid(),
            "idle": len(self.pool.idle),
            "busy": len(self.pool.busy()),
            "takeovers": len(self.takeovers.pending),
            "leaving": self._leaving,
        }

    def _run(self, attempt_id: str) -> None:
        if not protocol.valid_attempt_id(attempt_id):
            return
        self._leaving = False
        if self.pool.hand_over(attempt_id) is None:
            try:
                self._fork()
                self.pool.hand_over(attempt_id)
            except OSError as error:
                self._refuse(attempt_id, error)

    def _refuse(self, attempt_id: str, error: OSError) -> None:
        """No supervisor can be forked: the attempt ends before it began and may be retried."""
        detail = {"errno": error.errno, "message": error.strerror, "step": "fork_supervisor"}
        fields = end_record.outside(journal.Journal(), None, by="keeper")
        takeover.write_exit(attempt_id, self.news, {**fields, **detail})

    def _leave(self) -> None:
        self._leaving = True
        for member in list(self.pool.idle):
            self._dismiss(member)

    def _hear_supervisor(self, member: Member) -> None:
        try:
            message = member.channel.recv(64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._dismiss(member)  # it is dead; SIGCHLD leads to what it left
        elif self._leaving:
            member.attempt_id = None
            self._dismiss(member)
        else:
            fd = member.channel.fileno()
            self.pool.came_back(member)
            if member.channel.fileno() < 0:
                self._unregister(fd)

    def _hear_signals(self) -> None:
        numbers = self._signals.recv(4096)
        if signal.SIGTERM in numbers:
            self._leave()
        if signal.SIGCHLD in numbers:
            self.takeovers.look()

    def _fork(self) -> None:
        member = self.pool.fork()
        self._poll.register(member.channel.fileno(), select.EPOLLIN)

    def _dismiss(self, member: Member) -> None:
        fd = member.channel.fileno()
        if fd >= 0:
            self._unregister(fd)
        self.pool.dismiss(member)

    def _unregister(self, fd: int) -> None:
        with contextlib.suppress(OSError, ValueError):  # closing takes it out, too
            self._poll.unregister(fd)


def _answer(client: socket.socket, answer: dict[str, Any]) -> bool:
    try:
        client.send(json.dumps(answer).encode())
    except OSError:
        return False
    return True


def listen(name: str) -> socket.socket:
    """Bind in the working directory, whatever a dead keeper left there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(name)
    os.chmod(name, 0o600)
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


def warm_up() -> None:
    """Everything is imported and has run: out of the collector's sight with it, so that forks
    share it."""
    kernel.become_subreaper()
    rehearsal.rehearse()
    gc.collect()
    gc.freeze()
    gc.disable()
