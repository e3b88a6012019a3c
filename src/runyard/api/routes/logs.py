"""The log of a job: as lines, as bytes, or followed while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from runyard.api import asking, log_follow, log_proxy
from runyard.api.json_body import Json
from runyard.domain import errors, log_lines
from runyard.logs import log_search
from runyard.logs.log_file import LogFile, LogFiles, Page
from runyard.logs.log_outline import Outline, outline
from runyard.logs.log_spans import Gap
from runyard.wire.log_answers import LogsAnswer

router = APIRouter()

_TAIL = 100
_MOST_LINES = 100_000
_LIMIT = 1000
_FAR = 2**62

OTHER_FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Lines; with `raw` the bytes; with `follow` server-sent events.",
        "content": {
            "text/event-stream": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}

Count = Annotated[int | None, Query(ge=0, le=_FAR)]


@dataclass(frozen=True, slots=True)
class _Search:
    text: str
    regex: bool
    ignore_case: bool


@router.get(
    "/jobs/{ref}/logs",
    operation_id="get_logs",
    response_model=LogsAnswer,
    responses=OTHER_FORMS,
)
async def get_logs(
    request: Request,
    ref: asking.Ref,
    tail: Annotated[Count, Query(description="The last so many lines; 100 by default.")] = None,
    from_: Annotated[Count, Query(alias="from", description="From this line on, from 0.")] = None,
    limit: Annotated[Count, Query(description="At most so many lines.")] = None,
    grep: Annotated[
        str | None, Query(max_length=1000, description="Lines with this text.")
    ] = None,
    regex: Annotated[bool, Query(description="`grep` is a simple regular expression.")] = False,
    ignore_case: Annotated[bool, Query(description="In `grep` capitals do not matter.")] = False,
    rank: Annotated[int, Query(ge=0, le=100_000)] = 0,
    attempt: Annotated[int | None, Query(ge=1, le=2**31)] = None,
    raw: Annotated[bool, Query(description="The bytes as they were written.")] = False,
    offset: Annotated[Count, Query(description="With raw or follow: from this byte on.")] = None,
    length: Annotated[Count, Query(description="With raw: so many bytes.")] = None,
    follow: Annotated[bool, Query(description="Server-sent events until the end.")] = False,
    service: Annotated[
        str, Query(max_length=100, description="The log of this service of the job.")
    ] = "",
    outlined: Annotated[
        bool, Query(alias="outline", description="Also the log as a whole: `outline`.")
    ] = False,
) -> Response:
    """Carriage returns are folded to the last state of a line, except with `raw`."""
    yard = asking.yard(request)
    asking.job_ref(ref)
    url = await run_in_threadpool(yard.node_url_of, ref, attempt)
    if url is not None and not log_proxy.was_forwarded(request):
        return await log_proxy.forward(request, url)
    if follow:
        asked = log_follow.Following(yard, ref, attempt, rank, 0, grep or "", service)
        return await _follow(request, asked, (tail, from_, offset))
    path, ended = await run_in_threadpool(yard.log_path, ref, attempt, rank, service)
    log = _files(request).at(path)
    if raw:
        return _raw(log, ref, offset or 0, length)
    search = _Search(grep, regex, ignore_case) if grep else None
    page = await run_in_threadpool(_page, log, tail, from_, limit, search)
    number = attempt or _number(path)
    answer = _answer(page, number, ended)
    if outlined:
        whole = await run_in_threadpool(outline, log, page.size)
        answer["outline"] = _whole(whole)
    return Json(answer)


def _files(request: Request) -> LogFiles:
    files = request.app.state.log_files
    assert isinstance(files, LogFiles)
    return files


def _number(path: str) -> int | None:
    """The attempt a log belongs to, from its folder `job-....N`."""
    number = path.rpartition("/")[0].rpartition(".")[2]
    return int(number) if number.isdigit() else None


def _page(
    log: LogFile,
    tail: int | None,
    first: int | None,
    limit: int | None,
    search: _Search | None,
) -> Page:
    wanted = min(_LIMIT if limit is None else limit, _MOST_LINES)
    last = None if first is not None else min(_TAIL if tail is None else tail, _MOST_LINES)
    if search:
        return log_search.grep(
            log,
            search.text,
            regex=search.regex,
            ignore_case=search.ignore_case,
            tail=last,
            first=first or 0,
            limit=wanted,
        )
    if last is None:
        return log.lines(first or 0, wanted)
    return log.tail(last)


def _answer(page: Page, attempt: int | None, ended: bool) -> dict[str, Any]:
    return {
        "logs": page.lines,
        "from": page.first,
        "next": page.following,
        "numbers": page.numbers,
        "size": page.size,
        "attempt": attempt,
        "ended": ended,
        "complete": page.complete,
        "gaps": [
            {
                "at": place,
                "from_byte": gap.start,
                "to_byte": gap.end,
                "bytes": gap.end - gap.start,
                "lines": gap.lines,
            }
            for place, gap in page.gaps
        ],
    }


def _whole(found: Outline) -> dict[str, Any]:
    return {
        "total": found.total,
        "unfinished": found.unfinished,
        "resume": found.resume,
        "dropped": [
            {
                "from_byte": part.start,
                "to_byte": part.end,
                "bytes": part.end - part.start,
                "before": part.before,
                "after": part.after,
            }
            for part in found.dropped
        ],
    }


def _raw(log: LogFile, ref: str, offset: int, length: int | None) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{ref}.log"',
        "X-Log-Size": str(log.size()),
        "X-Content-Type-Options": "nosniff",
    }
    body = _bytes(log, offset, length)
    return StreamingResponse(body, media_type="application/octet-stream", headers=headers)


def _bytes(log: LogFile, offset: int, length: int | None) -> Iterator[bytes]:
    for piece in log.raw(offset, length):
        if isinstance(piece, Gap):
            yield b"\n" + log_lines.gap_line(piece.end - piece.start).encode() + b"\n"
        else:
            yield piece


async def _follow(
    request: Request,
    asked: log_follow.Following,
    begin: tuple[int | None, int | None, int | None],
) -> Response:
    view = await run_in_threadpool(asked.yard.job, asked.ref)
    if asked.attempt is not None or asked.rank or asked.service:
        await run_in_threadpool(asked.log_path, asked.attempt)  # NotFound before the stream
    begun, asked.offset = await _begin(request, asked, view.job.attempt_number, begin)
    events = log_follow.events(asked, view, begun)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _begin(
    request: Request,
    asked: log_follow.Following,
    newest: int,
    begin: tuple[int | None, int | None, int | None],
) -> tuple[int, int]:
    """(attempt, byte) to begin with: where a lost connection was, else as the query says."""
    tail, first, offset = begin
    number = asked.attempt or newest
    resumed = request.headers.get("last-event-id")
    if resumed is not None:
        left, _, right = resumed.rpartition(":")
        if right.isdigit() and (left.isdigit() or not left) and len(resumed) < 40:
            resumed_number = int(left) if left else number
            if resumed_number <= newest and asked.attempt in (None, resumed_number):
                return resumed_number, int(right)
        raise errors.InvalidRequest(
            "Last-Event-ID is none of this log's.",
            fields=[{"field": "Last-Event-ID", "code": "bad_value", "message": resumed[:100]}],
        )
    if offset is not None:
        return number, offset
    if not number or (tail is None and not first):
        return number, 0
    path, _ = await run_in_threadpool(asked.log_path, number)
    log = _files(request).at(path)
    if tail is not None:
        return number, await run_in_threadpool(log.tail_offset, min(tail, _MOST_LINES))
    return number, await run_in_threadpool(log.line_offset, first or 0)
