"""One file of a job's output, whole or in parts."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking, log_proxy
from runyard.api.file_answer import FileAnswer

router = APIRouter()

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# Whatever a job wrote, a browser must not take it for a page of ours.
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "no-store",
    "Accept-Ranges": "bytes",
}


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
    return FileAnswer(file, first, length, headers, status_code=200 if whole else 206)


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
