"""The server's side of the keeper: start it when there is none, hand it attempts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import zlib
from typing import Any

from runyard.supervisor import protocol

_START_TIMEOUT_S = 20.0
_ANSWER_TIMEOUT_S = 5.0
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


class KeeperUnavailable(Exception):
    """No keeper can be reached or started."""


class KeeperClient:
    """Thread safe. A keeper that died is replaced at the next call."""

    def __init__(self, data_dir: str, *, python: str | None = None) -> None:
        self._data_dir = os.path.abspath(data_dir)
        self._python = python or sys.executable
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._directory = -1
        self.generation = generation()
        self.connections = 0  # grows when a keeper had to be replaced

    def ensure(self) -> None:
        """Connect, and start a keeper if none runs. Older generations are told to leave."""
        with self._lock:
            self._connected()

    def run(self, attempt_id: str) -> None:
        """Hand over an attempt whose journal exists. Not answered: news and journal tell."""
        if not protocol.valid_attempt_id(attempt_id):
            raise ValueError(f"not an attempt id: {attempt_id!r}")
        message = b"run " + attempt_id.encode()
        with self._lock:
            try:
                self._connected().send(message)
            except OSError:
                # Handing over twice is harmless: the lock lets one supervisor have it.
                self._disconnect()
                try:
                    self._connected().send(message)
                except OSError as error:
                    raise KeeperUnavailable(str(error)) from error

    def hello(self) -> dict[str, Any]:
        return self._ask(b"hello")

    def list(self) -> dict[str, Any]:
        """{"attempts": {id: supervisor pid}, "takeovers": [id]}"""
        return self._ask(b"list")

    def leave(self) -> None:
        """Tell the keeper to end once nothing runs; it is not started for that."""
        with self._lock:
            if self._socket is None and not self._connect():
                return
            with contextlib.suppress(OSError):
                self._exchange(b"leave")
            self._disconnect()

    def alive(self) -> bool:
        """Whether the keeper we are connected to lives; starts nothing."""
        with self._lock:
            return self._socket is not None and not _hung_up(self._socket)

    def close(self) -> None:
        with self._lock:
            self._disconnect()
            if self._directory >= 0:
                os.close(self._directory)
                self._directory = -1

    def _ask(self, request: bytes) -> dict[str, Any]:
        with self._lock:
            self._connected()
            try:
                return self._exchange(request)
            except OSError:
                self._disconnect()
                self._connected()
                return self._exchange(request)

    def _exchange(self, request: bytes) -> dict[str, Any]:
        assert self._socket is not None
        self._socket.send(request)
        answer = self._socket.recv(1 << 20)
        if not answer:
            raise ConnectionResetError("the keeper hung up")
        return json.loads(answer)  # type: ignore[no-any-return]

    def _connected(self) -> socket.socket:
        if self._socket is not None and not _hung_up(self._socket):
            return self._socket
        self._disconnect()
        if not self._connect():
            self._start()
            if not self._connect():
                raise KeeperUnavailable("the keeper does not listen")
        assert self._socket is not None
        return self._socket

    def _connect(self) -> bool:
        if self._directory < 0:
            os.makedirs(f"{self._data_dir}/{protocol.KEEPER}", 0o700, exist_ok=True)
            self._directory = os.open(
                f"{self._data_dir}/{protocol.KEEPER}",
                os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC,
            )
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(_ANSWER_TIMEOUT_S)
        try:
            sock.connect(f"/proc/self/fd/{self._directory}/{self.generation}.sock")
            if _peer_uid(sock) != os.getuid():
                raise PermissionError("the keeper's socket belongs to somebody else")
        except OSError:
            sock.close()
            return False
        self._socket = sock
        self.connections += 1
        return True

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _start(self) -> None:
        """The program detaches itself and ends when its keeper listens."""
        os.makedirs(f"{self._data_dir}/{protocol.ATTEMPTS}", 0o700, exist_ok=True)
        main = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper_main.py")
        log = os.open(
            f"{self._data_dir}/{protocol.KEEPER}/{self.generation}.log",
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
            0o600,
        )
        command = [self._python, "-I", "-S", "-X", "utf8", main]
        command += ["--data-dir", self._data_dir, "--generation", self.generation]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={k: v for k, v in os.environ.items() if k in _KEPT_ENVIRONMENT},
                cwd="/",
                timeout=_START_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise KeeperUnavailable(str(error)) from error
        finally:
            os.close(log)
        if done.returncode != 0:
            raise KeeperUnavailable(f"the keeper ended with {done.returncode}; see its log")
        self._dismiss_others()

    def _dismiss_others(self) -> None:
        """Keepers of other generations take nothing new and end with their last attempt."""
        for name in os.listdir(self._directory):
            if not name.endswith(".sock") or name == f"{self.generation}.sock":
                continue
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            sock.settimeout(_ANSWER_TIMEOUT_S)
            try:
                sock.connect(f"/proc/self/fd/{self._directory}/{name}")
                sock.send(b"leave")
                sock.recv(4096)
            except OSError:
                pass  # nobody there
            finally:
                sock.close()


def keeper_locked(data_dir: str, name: str | None = None) -> bool:
    """Whether a keeper of this generation holds its lock; its pid is of no interest."""
    path = f"{data_dir}/{protocol.KEEPER}/{name or generation()}.lock"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        query = struct.pack("hhqqixxxx", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, query)
        return bool(struct.unpack("hhqqixxxx", answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(fd)


def generation() -> str:
    """Protocol version and a checksum of this folder's code: a keeper runs one generation."""
    folder = os.path.dirname(os.path.abspath(__file__))
    checksum = 0
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                checksum = zlib.crc32(file.read(), checksum)
    return f"v{protocol.VERSION}-{checksum:08x}"


def _hung_up(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLRDHUP)
    return bool(poll.poll(0))


def _peer_uid(sock: socket.socket) -> int:
    _, uid, _ = struct.unpack("iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)
