"""News for the server: one JSON datagram each, sent without waiting. The journal is the truth."""

from __future__ import annotations

import errno
import json
import select
import socket
import time
from typing import Any

from runyard.supervisor import protocol

_BACKLOG = 64  # unsent pieces a sender remembers; older ones are dropped
_TRIES = 6
_encode_json = json.JSONEncoder(separators=(",", ":")).encode


class NewsSender:
    """Sends to the server's socket in the data directory, which is the working directory."""

    __slots__ = ("_socket", "unsent")

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.unsent: list[tuple[int, bytes]] = []

    def send(self, kind: str, attempt_id: str, **fields: Any) -> None:
        piece = {
            "v": protocol.VERSION,
            "kind": kind,
            "attempt_id": attempt_id,
            "at": time.time(),
            **fields,
        }
        data = _encode_json(piece).encode()
        if self.unsent or not self._try(data):
            self.unsent.append((_TRIES, data))
            del self.unsent[:-_BACKLOG]

    def flush(self, patience_s: float = 0.0) -> bool:
        """Try again to send what could not be sent; wait this long for room in a full queue."""
        deadline = time.monotonic() + patience_s
        while self.unsent:
            _tries, data = self.unsent[0]
            if self._try(data):
                self.unsent.pop(0)
            elif (left := deadline - time.monotonic()) > 0:
                select.select([], [], [], min(left, 0.002))
            else:
                self.unsent = [(n - 1, d) for n, d in self.unsent if n > 1]
                return False
        return True

    def _try(self, data: bytes) -> bool:
        """False if the queue is full or nobody listens; news too large to send is given up."""
        try:
            self._socket.sendto(data, protocol.NEWS_SOCKET)
        except OSError as error:
            return error.errno == errno.EMSGSIZE
        return True

    @property
    def fd(self) -> int:
        return self._socket.fileno()
