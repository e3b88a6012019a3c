"""Pulls one image: `python -I docker_pull.py SOCKET IMAGE PROGRESS_FILE`.

Uses the engine's Python package, which finds the registry's credentials where `docker login` and
credential helpers leave them. How far it is goes into the file, a few times a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from runyard.executors import docker_files

_TELL_S = 0.3
_TIMEOUT_S = 3600
# The first that fits: an engine tells of a missing image and of a missing login in one sentence.
_KINDS = (
    ("disk_full", ("no space left", "disk quota exceeded")),
    ("auth", ("denied", "unauthorized", "authentication required", "no basic auth")),
    ("not_found", ("not found", "manifest unknown", "name unknown", "does not exist")),
    (
        "network",
        (
            *("timeout", "timed out", "deadline exceeded", "toomanyrequests", "too many requests"),
            *("connection refused", "connection reset", "connection aborted", "broken pipe"),
            *("no such host", "temporary failure", "unreachable", "no route to host", "eof"),
            *("service unavailable", "bad gateway", "internal server error"),
        ),
    ),
)


class Progress:
    """Sums up what the engine tells of single layers."""

    def __init__(self, image: str, path: str) -> None:
        self._image = image
        self._folder, self._name = os.path.split(path)
        # One for all images of a server, in the folder of its attempts: a byte for each image.
        self.lock_file = os.path.join(os.path.dirname(self._folder), ".pulls")
        self._layers: dict[str, tuple[int, int]] = {}
        self._done: set[str] = set()
        self._lock = threading.Lock()
        self._finished = False  # what is told then stays
        self._changed = threading.Event()
        threading.Thread(target=self._tell_changes, name="progress", daemon=True).start()

    def hear(self, line: dict[str, Any]) -> None:
        layer, status = line.get("id"), str(line.get("status", ""))
        detail = line.get("progressDetail") or {}
        if layer and status == "Downloading" and detail.get("total"):
            self._layers[layer] = (int(detail.get("current", 0)), int(detail["total"]))
        elif layer and status in ("Pull complete", "Already exists"):
            self._done.add(layer)
            if layer in self._layers:
                total = self._layers[layer][1]
                self._layers[layer] = (total, total)
        elif layer and status == "Pulling fs layer":
            self._layers.setdefault(layer, (0, 0))
        self._changed.set()

    def _tell_changes(self) -> None:
        """Also the last one before the engine falls silent."""
        while True:
            self._changed.wait()
            self._changed.clear()
            self.tell()
            time.sleep(_TELL_S)

    def tell(self, **fields: Any) -> None:
        layers = list(self._layers.values())
        told = {
            "image": self._image,
            "bytes_done": sum(done for done, _ in layers),
            "bytes_total": sum(total for _, total in layers),
            "layers_done": len(self._done),
            "layers_total": len(self._layers.keys() | self._done),
            **fields,
        }
        with self._lock:
            if not self._finished:
                self._finished = bool(fields)
                docker_files.write(self._folder, self._name, told)


def pull(socket_path: str, image: str, progress: Progress) -> str:
    """Empty, or what went wrong."""
    try:
        import docker
        from docker.errors import DockerException
        from docker.utils import parse_repository_tag
    except ImportError:
        return "the Python package docker is not installed here: pip install 'runyard[docker]'"
    try:
        client = docker.APIClient(f"unix://{socket_path}", version="auto", timeout=_TIMEOUT_S)
        repository, tag = parse_repository_tag(image)
        with _turn(client, image, progress.lock_file) as waited:
            if waited and _is_here(client, image):
                return ""
            for line in client.pull(repository, tag=tag or "latest", stream=True, decode=True):
                if line.get("error"):
                    return str(line["error"])
                progress.hear(line)
    except (DockerException, OSError) as error:
        return str(getattr(error, "explanation", None) or error)
    return ""


@contextlib.contextmanager
def _turn(client: Any, image: str, lock_file: str) -> Iterator[bool]:
    """Podman fetches an image once for each who asks; there one pulls and the others wait for it.
    Docker lets them share, and goes on for the others when one leaves. Whether it waited."""
    parts = client.version().get("Components") or ()
    if not any("podman" in str(part.get("Name")).lower() for part in parts):
        yield False
        return
    place = int.from_bytes(hashlib.sha256(image.encode()).digest()[:7], "big")
    waited = False
    with open(lock_file, "ab") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except BlockingIOError:
            fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
            waited = True
        yield waited


def _is_here(client: Any, image: str) -> bool:
    from docker.errors import NotFound

    try:
        client.inspect_image(image)
    except NotFound:
        return False
    return True


def code_of(message: str) -> str:
    """What kind of trouble an engine's words are about: only what may pass is tried again."""
    said = message.lower()
    return next((code for code, words in _KINDS if any(word in said for word in words)), "failed")


def main(arguments: list[str]) -> int:
    socket_path, image, path = arguments
    progress = Progress(image, path)
    progress.tell()
    wrong = pull(socket_path, image, progress)
    told = {"error": wrong, "code": code_of(wrong)} if wrong else {"complete": True}
    progress.tell(**told)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
