"""A small real HTTP server that answers as a test tells it, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BASE = "/api/v1/training"
DROP = object()  # close the connection without a word


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    headers: dict[str, str]
    connection: int


@dataclass
class Reply:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Answer = Any | Callable[[Asked], Any]


class ScriptedServer:
    """`on(method, path, *answers)`: given in turn, the last one again and again. Each answer is
    a JSON value, a Reply, DROP, or a function of what was asked that returns one of these."""

    def __init__(self, port: int = 0) -> None:
        self.asked: list[Asked] = []
        self.changed = threading.Condition()
        self._rules: list[tuple[str, re.Pattern[str], list[Answer]]] = []
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.script = self
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def on(self, method: str, path: str, *answers: Answer) -> None:
        full = path if path.startswith(("/api", "/readyz")) else BASE + path
        self._rules.insert(0, (method, re.compile(full + r"\Z"), list(answers)))

    def requests(self, method: str, path: str) -> list[Asked]:
        pattern = re.compile((path if path.startswith("/readyz") else BASE + path) + r"\Z")
        return [one for one in self.asked if one.method == method and pattern.match(one.path)]

    def answer(self, asked: Asked) -> Any:
        with self.changed:
            self.asked.append(asked)
            self.changed.notify_all()
            for method, pattern, answers in self._rules:
                if method == asked.method and pattern.match(asked.path):
                    found = answers.pop(0) if len(answers) > 1 else answers[0]
                    break
            else:
                found = problem(404, "not_found", f"nothing scripted for {asked.path}")
        return found(asked) if callable(found) else found

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._http.drop_connections()
        self._thread.join(5)


def problem(status: int, code: str, message: str, /, **params: Any) -> Reply:
    body = {"code": code, "message": message, "params": params, "request_id": "req-1"}
    return Reply(status, body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    script: ScriptedServer

    def __init__(self, *arguments: Any) -> None:
        self.live: set[Any] = set()
        self.numbers = itertools.count(1)  # of connections, whose threads begin at once
        super().__init__(*arguments)

    def handle_error(self, *_: Any) -> None:
        pass  # clients that leave in the middle are part of what is tested

    def drop_connections(self) -> None:
        for connection in list(self.live):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.number = next(self.server.numbers)
        self.server.live.add(self.connection)

    def finish(self) -> None:
        self.server.live.discard(self.connection)
        super().finish()

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        parts = urlsplit(self.path)
        asked = Asked(
            self.command,
            parts.path,
            parse_qs(parts.query),
            json.loads(data) if data else None,
            dict(self.headers.items()),
            self.number,
        )
        found = self.server.script.answer(asked)
        if found is DROP:
            self.close_connection = True
            return
        reply = found if isinstance(found, Reply) else Reply(200, found)
        raw = isinstance(reply.body, bytes)
        body = reply.body if raw else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _serve

    def log_message(self, *_: Any) -> None:
        pass
