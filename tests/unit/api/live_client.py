"""A client of the live socket for tests: reads in the background and keeps what came."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest
from served import BASE, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect


class Live:
    def __init__(self, served, *topics, last_id=None, key=None, origin=None, subprotocols=None):
        self._open = connect(
            _url(served, "/monitor/ws"),
            additional_headers=_headers(served.key if key is None else key),
            origin=origin,
            subprotocols=subprotocols,
            open_timeout=60,
        )
        self.socket = self._open.__enter__()
        self.got: list[dict] = []
        self._taken = 0
        self.closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if topics:
            last = {} if last_id is None else {"last_id": last_id}
            self.say({"subscribe": list(topics), **last})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._open.__exit__(*error)
        self._reader.join(60)

    def say(self, message):
        self.socket.send(message if isinstance(message, str) else json.dumps(message))

    def _read(self):
        with contextlib.suppress(ConnectionClosed):
            for message in self.socket:
                self.got.append(json.loads(message))
        self.closed = True

    def until(self, condition, seconds=60):
        return until(condition, seconds, f"got {json.dumps(self.got)[-1500:]}")

    def next(self, topic):
        """The first message of this topic."""
        return self.until(lambda: [one for one in self.got if one.get("topic") == topic])[0]

    def events(self, topic=None):
        return [
            event
            for message in list(self.got)
            for event in message.get("events", ())
            if topic in (None, message.get("topic"))
        ]

    def find(self, wanted, topic=None):
        return next((one for one in self.events(topic) if wanted(one)), None)

    def row(self, job, status):
        def is_it(one):
            return one.get("job_id") == job and one.get("status") == status

        return self.until(lambda: self.find(is_it))

    def points(self, name):
        return [
            point
            for event in self.events()
            if event["type"] == "points" and name in event["series"]
            for one in [event["series"][name]]
            for point in zip(one["steps"], one["values"], strict=True)
        ]

    def text(self):
        return "".join(one["text"] for one in self.events() if one["type"] == "text")


def _url(served, path):
    return f"ws://127.0.0.1:{served.port}{BASE}{path}"


def _headers(key):
    return {"Authorization": f"Bearer {key}"} if key else {}


def refused(served, key, path="/monitor/ws", subprotocols=None, origin=None, host=None):
    """The status of the answer that is no socket."""
    raw = socket.create_connection(("127.0.0.1", served.port), timeout=60)
    with (
        pytest.raises(InvalidStatus) as error,
        connect(
            f"ws://{host or f'127.0.0.1:{served.port}'}{BASE}{path}",
            sock=raw,
            additional_headers=_headers(key),
            origin=origin,
            subprotocols=subprotocols,
        ),
    ):
        pass
    return error.value.response.status_code
