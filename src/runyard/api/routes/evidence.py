"""Evidence that was saved with an attempt: stacks, GPU snapshots, NCCL traces."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import APIRouter, Path, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking, log_proxy
from runyard.api.file_answer import FileAnswer
from runyard.api.json_body import Json, iso
from runyard.domain import errors
from runyard.wire import rules as shapes

router = APIRouter()

Number = Annotated[int, Path(ge=1, le=2**31)]


@router.get(
    "/jobs/{ref}/attempts/{number}/evidence",
    operation_id="list_evidence",
    response_model=list[shapes.EvidenceAnswer],
)
async def list_evidence(request: Request, ref: asking.Ref, number: Number) -> Response:
    """Empty when nothing ever went wrong."""
    yard, ref = asking.yard(request), asking.job_ref(ref)
    url = await run_in_threadpool(yard.node_url_of, ref, number)
    if url is not None and not log_proxy.was_forwarded(request):
        return await log_proxy.forward(request, url)
    found = await run_in_threadpool(yard.evidence, ref, number)
    return Json([{"name": one.name, "size": one.size, "at": iso(one.at)} for one in found])


@router.get(
    "/jobs/{ref}/attempts/{number}/evidence/{name:path}",
    operation_id="get_evidence",
    response_class=Response,
)
async def get_evidence(request: Request, ref: asking.Ref, number: Number, name: str) -> Response:
    """One of the listed files, as it is."""
    yard, ref = asking.yard(request), asking.job_ref(ref)
    url = await run_in_threadpool(yard.node_url_of, ref, number)
    if url is not None and not log_proxy.was_forwarded(request):
        return await log_proxy.forward(request, url)
    fd = await run_in_threadpool(yard.open_evidence, ref, number, name)
    if fd is None:
        raise errors.NotFound(f"Attempt {number} has no such evidence.", name=name[:200])
    plain = name.endswith((".txt", ".json"))
    kind = "text/plain; charset=utf-8" if plain else "application/octet-stream"
    file = os.fdopen(fd, "rb")
    size = os.fstat(fd).st_size
    return FileAnswer(file, 0, size, {"X-Content-Type-Options": "nosniff"}, media_type=kind)
