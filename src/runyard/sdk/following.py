"""Lines of a log as they are written (server-sent events), over lost connections."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from runyard.sdk import errors
from runyard.sdk.connection import Connection, Stream

PATIENCE_S = 120.0  # how long a server may be away before following is given up
_SILENCE_S = 60.0  # the server sends a comment more often than this
_BROKEN = (OSError, http.client.HTTPException, errors.ServerUnreachable, errors.ShuttingDown)


def lines(connection: Connection, path: str, query: Mapping[str, Any]) -> Iterator[str]:
    """Until the server says that the job has ended; each line exactly once."""
    last_id: str | None = None
    lost_at: float | None = None
    while True:
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        try:
            with connection.stream(
                path, query={**query, "follow": "true"}, headers=headers, timeout_s=_SILENCE_S
            ) as stream:
                lost_at = None
                for kind, data, event_id in events(stream):
                    last_id = event_id or last_id
                    if kind == "end":
                        return
                    if kind == "message":
                        yield data
                    elif kind == "gap":
                        yield str(json.loads(data).get("text", ""))
        except _BROKEN:
            lost_at = lost_at or time.monotonic()
            if time.monotonic() - lost_at > PATIENCE_S:
                raise
        time.sleep(0.5)


def events(stream: Stream) -> Iterator[tuple[str, str, str | None]]:
    """(event, data, id) of each server-sent event, until the stream ends."""
    kind, event_id = "message", None
    data: list[str] = []
    while raw := stream.read_line():
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield kind, "\n".join(data), event_id
            kind, data, event_id = "message", [], None
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            kind = value
        elif name == "id":
            event_id = value
