"""A receiver of notifications on loopback: up, down, slow, failing or leading elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from yards import free_port


class Got:
    """One request that came, whatever was answered."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path, self.headers, self.raw = path, headers, body

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def delivery(self) -> str:
        return self.headers["X-Runyard-Delivery"]

    def signed_by(self, secret: str) -> bool:
        """As a receiver would check it."""
        parts = dict(part.split("=", 1) for part in self.headers["X-Runyard-Signature"].split(","))
        signed = hmac.new(secret.encode(), parts["t"].encode() + b"." + self.raw, hashlib.sha256)
        return hmac.compare_digest(signed.hexdigest(), parts["v1"])


class WebhookReceiver:
    def __init__(self) -> None:
        self.port = free_port()
        self.got: list[Got] = []
        self.answer = 200
        self.headers: dict[str, str] = {}
        self.reply = b""
        self.delay_s = 0.0
        self.drip_s = 0.0  # headers that never end, a byte now and then
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def taken(self) -> list[Got]:
        """What came while it answered well."""
        return [got for got in list(self.got) if got.headers["answered"] == "200"]

    def up(self) -> WebhookReceiver:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._take(self)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A caller that does not wait for the answer is no news."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        return self

    def down(self) -> None:
        """Nobody listens any more; `up` brings it back on the same port."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        # What was on its way when it went down is not taken, whatever is answered from then on.
        answer = self.answer if request.server is self._server else 503
        headers = {**dict(request.headers), "answered": str(answer)}
        self.got.append(Got(request.path, headers, body))
        deadline = time.monotonic() + self.drip_s
        while time.monotonic() < deadline:
            request.wfile.write(b"H")
            time.sleep(0.05)
        time.sleep(self.delay_s)
        request.send_response(answer)
        for name, value in self.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(self.reply)))
        request.end_headers()
        request.wfile.write(self.reply)
