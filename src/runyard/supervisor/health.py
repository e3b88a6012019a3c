"""Whether a service answers on loopback: looked at in small steps, none of which waits."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct

TCP = "tcp"
_HOST = "127.0.0.1"
_STATUS_BYTES = 12  # "HTTP/1.1 200"
_RESET = struct.pack("ii", 1, 0)


class Check:
    """One look: a connection, and with a path an answer of 2xx or 3xx to GET."""

    __slots__ = ("_answer", "_asked", "_port", "_request", "_socket", "_until", "said")

    def __init__(self, port: int, health: str, until: float) -> None:
        self._port = port
        self._request = b"" if health == TCP else _request(port, health)
        self._asked = False
        self._answer = b""
        self._until = until
        self.said = "no answer"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._socket.connect_ex((_HOST, port))

    def poll(self, now: float) -> bool | None:
        """None while it cannot be told yet."""
        try:
            healthy = self._look()
        except OSError as error:
            self.said = os.strerror(error.errno) if error.errno else str(error)
            healthy = False
        if healthy is None and now >= self._until:
            healthy = False
        if healthy is not None:
            self.close()
        return healthy

    def close(self) -> None:
        self._socket.close()

    def _look(self) -> bool | None:
        if not self._asked:
            if not _ready(self._socket, select.POLLOUT):
                return None
            self._connected()
            self._asked = True
            if not self._request:
                return True
            self._socket.send(self._request)
        while len(self._answer) < _STATUS_BYTES:
            if not _ready(self._socket, select.POLLIN):
                return None
            data = self._socket.recv(_STATUS_BYTES - len(self._answer))
            if not data:
                self.said = "closed without an answer"
                return False
            self._answer += data
        return self._is_good()

    def _connected(self) -> None:
        """OSError if it is not."""
        number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
        # A port nobody listens on can be chosen for our own end: then we talk to ourselves.
        if self._socket.getsockname() == self._socket.getpeername():
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            raise OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))

    def _is_good(self) -> bool:
        word = self._answer[9:12]
        if not self._answer.startswith(b"HTTP/1.") or not word.isdigit():
            self.said = "not HTTP"
            return False
        self.said = f"HTTP {word.decode()}"
        return word[:1] in (b"2", b"3")


def port_is_free(port: int) -> bool:
    """False if somebody has it already, who would then be taken for the service."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((_HOST, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def _ready(checked: socket.socket, event: int) -> bool:
    poll = select.poll()
    poll.register(checked, event)
    return bool(poll.poll(0))


def _request(port: int, path: str) -> bytes:
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {_HOST}:{port}",
        "User-Agent: runyard",
        "Accept: */*",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"
