"""Which jobs a list shows, and the headers that lead to its other pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from starlette.requests import Request

from runyard.api import session_cookie
from runyard.domain import errors
from runyard.domain.job import JobType
from runyard.domain.states import JobStatus
from runyard.stores.base import JobFilter, JobPage
from runyard.wire import refusals

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]+)?")
_LATEST = 253402300799.0  # the last second of the year 9999


def chosen_jobs(
    *,
    status: Sequence[str] | None = None,
    type: Sequence[str] | None = None,
    owner: Sequence[str] | None = None,
    q: str = "",
    label: Sequence[str] | None = None,
    since: str | None = None,
    ended_since: str | None = None,
    array_id: str | None = None,
) -> JobFilter:
    return JobFilter(
        statuses=statuses(status),
        job_types=_types(type),
        owners=tuple(words(owner)),
        text=q.strip(),
        labels=dict(_label(entry) for entry in label or ()),
        since=moment("since", since),
        ended_since=moment("ended_since", ended_since),
        array_id=array_id,
    )


def statuses(asked: Sequence[str] | None) -> tuple[JobStatus, ...]:
    known = [status.value for status in JobStatus]
    for word in words(asked):
        if word not in known:
            raise _wrong("status", f"'{word}' is none of {', '.join(known)}")
    return tuple(dict.fromkeys(JobStatus(word) for word in words(asked)))


def _types(asked: Sequence[str] | None) -> tuple[str, ...]:
    known = [kind.value for kind in JobType]
    for word in words(asked):
        if word not in known:
            raise _wrong("type", f"'{word}' is none of {', '.join(known)}")
    return tuple(words(asked))


def words(asked: Sequence[str] | None) -> list[str]:
    """A parameter may be given several times, and with commas."""
    return [word.strip() for entry in asked or () for word in entry.split(",") if word.strip()]


def _label(entry: str) -> tuple[str, str]:
    name, equals, value = entry.partition("=")
    if not equals or not name:
        raise _wrong("label", "must be written as name=value")
    return name, value


def moment(name: str, text: str | None) -> float | None:
    if not text:
        return None
    if _NUMBER.fullmatch(text):
        return min(float(text), _LATEST)
    try:
        # A '+' of the zone that was not escaped arrives as a space.
        found = datetime.fromisoformat(text.replace(" 0", "+0") if "T" in text else text)
    except ValueError:
        raise _wrong(name, "must be a time as ISO 8601, or seconds since 1970") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _wrong(name: str, message: str) -> errors.BadRequest:
    return refusals.refusal(errors.InvalidRequest, [refusals.field(name, "bad_value", message)])


def page_headers(request: Request, page: JobPage) -> dict[str, str]:
    return next_page_headers(request, page.total, page.next_cursor)


def next_page_headers(request: Request, total: int, cursor: str | None) -> dict[str, str]:
    headers = {"X-Total-Count": str(total)}
    if cursor is not None:
        url = request.url.include_query_params(cursor=cursor)
        headers["X-Next-Cursor"] = cursor
        path = session_cookie.root_path(request.scope) + url.path
        headers["Link"] = f'<{path}?{url.query}>; rel="next"'
    return headers
