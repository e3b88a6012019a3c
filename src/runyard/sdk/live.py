"""A WebSocket client with nothing but the standard library, as much of RFC 6455 as is needed."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import socket
import struct
import time
from typing import Any

from runyard.sdk import errors
from runyard.sdk.connection import Connection

_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of the standard
_HEAD_BYTES = 64 * 1024
_LARGEST = 64 * 1024 * 1024
_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_NORMAL = 1000
_TOO_LARGE = 1009
_WRONG = 1002


class LiveClosed(ConnectionError):
    """The server closed the socket, or it broke."""

    def __init__(self, why: str, code: int | None = None) -> None:
        super().__init__(why)
        self.code = code


class LiveSocket:
    """One connection. Read from one thread; `close` may be called from any."""

    def __init__(self, connection: Connection, path: str) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []  # of a message that came in several frames
        self._kind = 0
        self.heard_at = time.monotonic()  # also of pings
        self._socket, head = connection.dial(path)
        try:
            self._shake_hands(head)
        except BaseException:
            self._socket.close()
            raise

    def send(self, message: Any) -> None:
        self._send_frame(_TEXT, json.dumps(message).encode())

    def receive(self, timeout_s: float) -> Any:
        """The next message, parsed; None when none came in time; LiveClosed at the end."""
        deadline = time.monotonic() + timeout_s
        while True:
            while (frame := self._taken()) is not None:
                found = self._frame(*frame)
                if found is not None:
                    return json.loads(found)
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._read(left)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._send_frame(_CLOSE, struct.pack("!H", _NORMAL))
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that reads
        self._socket.close()

    # opening

    def _shake_hands(self, head: list[str]) -> None:
        key = base64.b64encode(os.urandom(16))
        wanted = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
        wanted.append(f"Sec-WebSocket-Key: {key.decode()}")
        try:
            self._socket.sendall(("\r\n".join([*head, *wanted]) + "\r\n\r\n").encode("latin-1"))
            while b"\r\n\r\n" not in self._buffer:
                if len(self._buffer) > _HEAD_BYTES:
                    raise LiveClosed("the answer is no HTTP")
                self._read(self._socket.gettimeout() or 30.0, must=True)
        except OSError as lost:
            raise errors.ServerUnreachable(
                f"The live socket does not open: {lost}.", params={"url": "", "why": str(lost)}
            ) from lost
        answer, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        first, *lines = answer.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        status = first.split(" ")[1] if first.startswith("HTTP/") and " " in first else "0"
        if status != "101":
            raise self._refusal(status, headers, rest)
        proof = base64.b64encode(hashlib.sha1(key + _ACCEPT).digest()).decode()
        if headers.get("sec-websocket-accept") != proof:
            raise errors.from_problem(502, None)
        self._buffer = bytearray(rest)

    def _refusal(self, status: str, headers: dict[str, str], rest: bytes) -> errors.RunyardError:
        """The problem that the server answered with."""
        length = int(headers["content-length"]) if "content-length" in headers else 0
        body = bytearray(rest)
        while len(body) < min(length, _HEAD_BYTES):
            more = self._socket.recv(4096)
            if not more:
                break
            body += more
        try:
            problem = json.loads(bytes(body))
        except ValueError:
            problem = None
        return errors.from_problem(int(status) if status.isdigit() else 0, problem)

    # frames

    def _read(self, seconds: float, *, must: bool = False) -> None:
        """What has come, within so many seconds. Half a frame waits in the buffer."""
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(256 * 1024)
        except TimeoutError:
            if must:
                raise
            return
        except OSError as lost:
            raise LiveClosed(str(lost) or "the connection broke") from lost
        if not data:
            raise LiveClosed("the server closed the connection")
        self._buffer += data
        self.heard_at = time.monotonic()

    def _taken(self) -> tuple[bool, int, bytes] | None:
        """(is the last part, kind, payload) of the next whole frame in the buffer."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        length, start = buffer[1] & 0x7F, 2
        if length >= 126:
            start = 4 if length == 126 else 10
            if len(buffer) < start:
                return None
            length = int.from_bytes(buffer[2:start], "big")
        if buffer[0] & 0x70 or buffer[1] & 0x80:  # extensions were not offered; never masked
            raise self._failed(_WRONG)
        if length > _LARGEST:
            raise self._failed(_TOO_LARGE)
        if len(buffer) < start + length:
            return None
        last, kind = bool(buffer[0] & 0x80), buffer[0] & 0x0F
        payload = bytes(buffer[start : start + length])
        del buffer[: start + length]
        return last, kind, payload

    def _frame(self, last: bool, kind: int, payload: bytes) -> bytes | None:
        """The message that this frame completes; answers what must be answered."""
        if kind == _PING:
            self._send_frame(_PONG, payload)
        elif kind == _CLOSE:
            code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else None
            why = payload[2:].decode("utf-8", "replace") or "the server closed the socket"
            raise LiveClosed(why, code)
        elif kind in (_TEXT, _BINARY, _CONTINUED):
            if (kind == _CONTINUED) != bool(self._kind):
                raise self._failed(_WRONG)
            self._kind = kind or self._kind
            self._parts.append(payload)
            if sum(map(len, self._parts)) > _LARGEST:
                raise self._failed(_TOO_LARGE)
            if last:
                whole, self._parts, self._kind = b"".join(self._parts), [], 0
                return whole
        elif kind != _PONG:
            raise self._failed(_WRONG)
        return None

    def _failed(self, code: int) -> LiveClosed:
        with contextlib.suppress(OSError):
            self._send_frame(_CLOSE, struct.pack("!H", code))
        return LiveClosed("what the server sends cannot be understood", code)

    def _send_frame(self, kind: int, payload: bytes) -> None:
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, length)
        mask = os.urandom(4)
        repeated = (mask * (length // 4 + 1))[:length]
        masked = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
        self._socket.sendall(head + mask + masked.to_bytes(length, "big"))
