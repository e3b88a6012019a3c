"""What changes, as messages of the live socket, over lost connections and restarted servers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from runyard.sdk import errors
from runyard.sdk.connection import Connection
from runyard.sdk.live import LiveClosed, LiveSocket

PATIENCE_S = 120.0  # how long a server may be away before watching is given up
_SILENCE_S = 60.0  # the server pings more often than this
_LOOK_S = 0.5
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 3.0
_LOST = (LiveClosed, OSError, errors.ServerUnreachable, errors.ShuttingDown)


class Watch:
    """Iterate over it for messages; `close`, from any thread, ends that."""

    def __init__(
        self,
        connection: Connection,
        path: str,
        topics: Sequence[str],
        *,
        last_id: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._connection = connection
        self._path = path
        self._places = {_name(topic): topic for topic in topics}  # where to go on with each
        self._last_id = last_id
        self._patience_s = patience_s
        self._closed = threading.Event()
        self._socket: LiveSocket | None = None
        self.is_live = False

    @property
    def last_id(self) -> int | None:
        """Give it to another watch to go on where this one was."""
        return self._last_id

    def close(self) -> None:
        self._closed.set()
        if self._socket is not None:
            self._socket.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        lost_at: float | None = None
        pause_s = _FIRST_PAUSE_S
        while not self._closed.is_set():
            try:
                for message in self._connected():
                    lost_at, pause_s = None, _FIRST_PAUSE_S
                    yield message
                return
            except _LOST:
                if self._closed.is_set():
                    return
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > self._patience_s:
                    raise
            finally:
                self._hang_up()
            self._closed.wait(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)

    def _connected(self) -> Iterator[dict[str, Any]]:
        """Messages until it is closed here; LiveClosed when it is lost."""
        self._socket = found = LiveSocket(self._connection, self._path)
        request: dict[str, Any] = {"subscribe": list(self._places.values())}
        if self._last_id is not None:
            request["last_id"] = self._last_id
        found.send(request)
        self.is_live = True
        while not self._closed.is_set():
            message = found.receive(_LOOK_S)
            if message is not None:
                self._note(message)
                yield message
            if found.heard_at + _SILENCE_S < time.monotonic():
                raise LiveClosed(f"nothing came for {_SILENCE_S:.0f} s")

    def _note(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("id"), int):
            self._last_id = message["id"]
        if message.get("next") and message.get("topic") in self._places:
            self._places[message["topic"]] = message["next"]

    def _hang_up(self) -> None:
        self.is_live = False
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None


def _name(topic: str) -> str:
    """Without the place to begin at, as it stands in messages."""
    return ":".join(topic.split(":")[:2])
