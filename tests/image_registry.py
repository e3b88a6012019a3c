"""A registry of images on loopback, just large enough to be pulled from: one image of one layer.

It can hold back the layer, so that a pull is under way for as long as a test needs.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from yards import free_port

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_CHUNK = 64 * 1024
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ImageRegistry:
    """`layer` is an uncompressed tar of the image's root."""

    def __init__(self, layer: bytes) -> None:
        self.hold = threading.Event()  # set: half of the layer is sent, and no more
        self.asked: list[str] = []
        self.closed = False
        packed = gzip.compress(layer, 1)
        self.layer = _digest(packed)
        self._blobs = {self.layer: packed}
        config = json.dumps(_config(_digest(layer))).encode()
        self._blobs[_digest(config)] = config
        self._manifest = json.dumps(_manifest(config, packed)).encode()
        registry = self

        class Handler(_Handler):
            def do_GET(self) -> None:
                registry.answer(self)

            do_HEAD = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.closed = True
        self.hold.clear()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def answer(self, handler: Any) -> None:
        self.asked.append(handler.path)
        name = handler.path.rpartition("/")[2]
        if handler.path == "/v2/":
            handler.give(b"{}", "application/json")
        elif "/manifests/" in handler.path and "missing" not in handler.path:
            handler.give(self._manifest, _MANIFEST)
        elif "/blobs/" in handler.path and name in self._blobs:
            self._give_blob(handler, self._blobs[name])
        else:
            problem = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
            handler.give(json.dumps(problem).encode(), "application/json", 404)

    def _give_blob(self, handler: Any, blob: bytes) -> None:
        handler.head(len(blob), "application/octet-stream", 200)
        if handler.command == "HEAD":
            return
        try:
            for start in range(0, len(blob), _CHUNK):
                while self.hold.is_set() and start >= len(blob) // 2 > _CHUNK:
                    time.sleep(0.02)
                handler.wfile.write(blob[start : start + _CHUNK])
        except OSError:
            handler.close_connection = True  # it left in the middle


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def head(self, length: int, kind: str, status: int) -> None:
        self.send_response(status)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def give(self, data: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Content-Digest", _digest(data))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _config(layer: str) -> dict[str, Any]:
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Env": ["PATH=/usr/bin:/bin", "FROM_IMAGE=yes"], "Cmd": ["/bin/sh"]},
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created_by": "a test"}],
    }


def _manifest(config: bytes, layer: bytes) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIG, "size": len(config), "digest": _digest(config)},
        "layers": [{"mediaType": _LAYER, "size": len(layer), "digest": _digest(layer)}],
    }


def padded(archive: bytes, padding: bytes) -> bytes:
    """The tar with one more file in it, so that it takes a while to send."""
    out = io.BytesIO(archive)
    with tarfile.open(fileobj=out, mode="a") as tar:
        entry = tarfile.TarInfo("padding")
        entry.size = len(padding)
        tar.addfile(entry, io.BytesIO(padding))
    return out.getvalue()
