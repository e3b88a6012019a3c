"""The datagram socket in the data directory, on which supervisors and keepers tell their news."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from runyard.supervisor import protocol

_DATAGRAM = 256 * 1024
_LISTEN_AGAIN_S = 0.05


class NewsSocket:
    """`take` is called with each datagram, in one thread; what it raises would end that."""

    def __init__(self, data_dir: Path, take: Callable[[bytearray], None]) -> None:
        self._data_dir = data_dir
        self._take = take
        self._socket: socket.socket | None = None
        self._listener: threading.Thread | None = None
        self._closing = threading.Event()

    def open(self) -> None:
        self._socket = _bind(self._data_dir)
        self._listener = threading.Thread(
            target=self._listen, args=(self._socket,), name="news", daemon=True
        )
        self._listener.start()

    def close(self) -> None:
        self._closing.set()
        if self._socket is None or self._listener is None:
            return
        self._socket.shutdown(socket.SHUT_RDWR)  # which ends the listener's waiting
        self._listener.join(2)
        self._socket.close()
        with contextlib.suppress(OSError):
            os.unlink(self._data_dir / protocol.NEWS_SOCKET)

    def _listen(self, listening: socket.socket) -> None:
        buffer = bytearray(_DATAGRAM)
        while not self._closing.is_set():
            try:
                size = listening.recv_into(buffer)
            except OSError:
                self._closing.wait(_LISTEN_AGAIN_S)
                continue
            self._take(buffer[:size])


def _bind(data_dir: Path) -> socket.socket:
    """The socket's path may be longer than an address can hold: go through the directory."""
    path = data_dir / protocol.NEWS_SOCKET
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * 1024 * 1024)
    folder = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listening.bind(f"/proc/self/fd/{folder}/{protocol.NEWS_SOCKET}")
    finally:
        os.close(folder)
    os.chmod(path, 0o600)
    return listening
