"""News for the server: one JSON datagram each, sent without waiting. The journal is the truth."""

from __future__ import annotations

import errno
import json
import socket
import time
from typing import Any

from runyard.supervisor import protocol

_BACKLOG = 64  # unsent pieces a sender remembers; older ones are dropped
_TRIES = 6  # while nobody listens
_QUEUE_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.1
_SENT, _FULL, _NOBODY = "sent", "full", "nobody"
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
        if self.unsent or self._try(data) is not _SENT:
            self.unsent.append((_TRIES, data))
            del self.unsent[:-_BACKLOG]

    def flush(self, patience_s: float = 0.0) -> None:
        """Try again to send what could not be sent; wait this long for room in a full queue."""
        deadline = time.monotonic() + patience_s
        pause = _QUEUE_PAUSE_S
        while self.unsent:
            outcome = self._try(self.unsent[0][1])
            if outcome is _SENT:
                self.unsent.pop(0)
            elif outcome is _NOBODY:
                self.unsent = [(n - 1, data) for n, data in self.unsent if n > 1]
                return
            elif (left := deadline - time.monotonic()) > 0:
                time.sleep(min(left, pause))
                pause = min(pause * 1.5, _LONGEST_PAUSE_S)
            else:
                return

    def close(self) -> None:
        self._socket.close()

    def _try(self, data: bytes) -> str:
        try:
            self._socket.sendto(data, protocol.NEWS_SOCKET)
        except BlockingIOError:
            return _FULL
        except OSError as error:
            # What is too large will never fit: the journal has it.
            return _SENT if error.errno == errno.EMSGSIZE else _NOBODY
        return _SENT
