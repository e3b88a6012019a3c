"""The bridge's side of its conversation with the server: one JSON object a line.

The server says `{"do": ..., "id": ...}`; the bridge answers `{"answer": id, ...}` and tells what
happens by itself as `{"told": ...}`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

Line = dict[str, Any]


class Talk:
    """Standard output belongs to the conversation alone: whatever else prints goes to stderr."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._out = os.dup(1)
        os.dup2(2, 1)

    def tell(self, told: str, **fields: Any) -> None:
        self._send({"told": told, **fields})

    def answer(self, asked: Line, **fields: Any) -> None:
        self._send({"answer": asked.get("id"), **fields})

    def lines(self) -> Iterator[Line]:
        """Until the server hangs up."""
        for line in sys.stdin.buffer:
            try:
                heard = json.loads(line)
            except ValueError:
                continue
            if isinstance(heard, dict):
                yield heard

    def _send(self, line: Line) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            view = memoryview(data)
            while view:
                view = view[os.write(self._out, view) :]
