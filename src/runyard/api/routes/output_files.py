"""One file of a job's output, whole or in parts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from runyard.api import asking, log_proxy

router = APIRouter()

_PART = 256 * 1024
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# Whatever a job wrote, a browser must not take it for a page of ours.
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
    "Accept-Ranges": "bytes",
}


class _FileAnswer(StreamingResponse):
    """Closes its file also when the one who asked is gone before the first byte."""

    def __init__(self, file: BinaryIO, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


@router.get("/jobs/{ref}/files/{path:path}", operation_id="download_file", response_class=Response)
async def download(request: Request, ref: asking.Ref, path: str) -> Response:
    """A file that is listed there, as it is now; `Range` gives a part of it."""
    yard, ref = asking.yard(request), asking.job_ref(ref)
    url = await run_in_threadpool(yard.node_url_of, ref)
    if url is not None and not log_proxy.was_forwarded(request):
        return await log_proxy.forward(request, url)
    fd = await run_in_threadpool(yard.pages.open_file, ref, path)
    file = os.fdopen(fd, "rb")
    size = os.fstat(fd).st_size
    name = quote(path.rpartition("/")[2], safe="")
    headers = {**_HEADERS, "Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    first, last = _asked(request.headers.get("range", ""), size)
    if first > last:
        file.close()
        headers["Content-Range"] = f"bytes */{size}"
        return Response(status_code=416, headers=headers)
    whole = (first, last) == (0, size - 1) or size == 0
    if not whole:
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    length = 0 if size == 0 else last - first + 1
    headers["Content-Length"] = str(length)
    return _FileAnswer(
        file,
        _parts(file, first, length),
        200 if whole else 206,
        media_type="application/octet-stream",
        headers=headers,
    )


def _asked(text: str, size: int) -> tuple[int, int]:
    """First and last byte; the whole where no single range is asked for; (1, 0) for none of it."""
    found = _RANGE.fullmatch(text.strip())
    if size == 0 or found is None or found[1] == found[2] == "":
        return 0, max(0, size - 1)
    if found[1] == "":
        return (max(0, size - int(found[2])), size - 1) if int(found[2]) else (1, 0)
    first = int(found[1])
    last = min(int(found[2]), size - 1) if found[2] else size - 1
    return (first, last) if first < size and first <= last else (1, 0)


def _parts(file: BinaryIO, first: int, length: int) -> Iterator[bytes]:
    file.seek(first)
    left = length
    while left > 0 and (data := file.read(min(_PART, left))):
        left -= len(data)
        yield data
