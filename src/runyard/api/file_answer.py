"""A file of a job as an answer, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

_PART = 256 * 1024


class FileAnswer(StreamingResponse):
    """So many bytes of an open file, which is closed also when the one who asked is gone before
    the first of them. Never more than it had when it was asked for: somebody may write on."""

    def __init__(
        self,
        file: BinaryIO,
        first: int,
        length: int,
        headers: dict[str, str],
        *,
        status_code: int = 200,
        media_type: str = "application/octet-stream",
    ) -> None:
        headers = {**headers, "Content-Length": str(length)}
        super().__init__(_parts(file, first, length), status_code, headers, media_type)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


def _parts(file: BinaryIO, first: int, length: int) -> Iterator[bytes]:
    file.seek(first)
    left = length
    while left > 0 and (data := file.read(min(_PART, left))):
        left -= len(data)
        yield data
