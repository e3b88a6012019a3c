"""Passes a request for a log on to the server that has it, and brings the answer back."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from urllib.parse import SplitResult, urlsplit

from starlette.requests import Request
from starlette.responses import StreamingResponse

from runyard.api.answers import BASE
from runyard.api.auth import Auth
from runyard.domain import errors

_CONNECT_S = 5.0
_ANSWER_S = 60.0
_MARK = "x-runyard-forwarded"
_PASSED_ON = ("last-event-id", "accept")
_PASSED_BACK = ("content-type", "content-length", "content-disposition", "x-log-size")


def was_forwarded(request: Request) -> bool:
    """A server asks another at most once, whatever the two believe about who owns the log."""
    return _MARK in request.headers


async def forward(request: Request, url: str) -> StreamingResponse:
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await _connected(parts)
    except (OSError, TimeoutError):
        raise _unreachable(url) from None
    try:
        writer.write(_request(request, parts.netloc))
        async with asyncio.timeout(_ANSWER_S):
            status, headers = await _head(reader)
    except (OSError, TimeoutError, ValueError, EOFError):
        writer.close()
        raise _unreachable(url) from None
    body = _body(reader, writer, headers)
    back = {name: value for name, value in headers.items() if name in _PASSED_BACK}
    return StreamingResponse(body, status, headers=back)


async def fetch_raw(
    url: str, ref: str, attempt: int | None, offset: int, length: int, key: str, rank: int = 0
) -> tuple[bytes, int]:
    """Bytes of a log that another server has, and how many it has in all."""
    query = f"raw=true&offset={offset}&length={length}&attempt={attempt or 1}&rank={rank}"
    target = f"{BASE}/jobs/{ref}/logs?{query}"
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await _connected(parts)
        lines = [f"GET {target} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
        lines += [f"{_MARK}: 1", f"Authorization: Bearer {key}"]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        async with asyncio.timeout(_ANSWER_S):
            status, headers = await _head(reader)
            data = b"".join([part async for part in _body(reader, writer, headers)])
    except (OSError, TimeoutError, ValueError, EOFError):
        raise _unreachable(url) from None
    if status != 200:
        raise _unreachable(url)
    return data, int(headers.get("x-log-size") or 0)


async def _connected(
    parts: SplitResult,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = parts.port or (443 if parts.scheme == "https" else 80)
    secure = ssl.create_default_context() if parts.scheme == "https" else None
    return await asyncio.open_connection(parts.hostname, port, ssl=secure)


def _unreachable(url: str) -> errors.Unavailable:
    return errors.Unavailable(
        f"The log is on another server, which does not answer: {url}.", reason="node_unreachable"
    )


def _request(request: Request, host: str) -> bytes:
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: close", f"{_MARK}: 1"]
    lines.append(f"Authorization: Bearer {Auth.key_of(request.scope)}")
    lines += [f"{name}: {request.headers[name]}" for name in _PASSED_ON if name in request.headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = raw.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def _body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: dict[str, str]
) -> AsyncIterator[bytes]:
    try:
        if headers.get("transfer-encoding") == "chunked":
            while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
            return
        while data := await reader.read(64 * 1024):
            yield data
    finally:
        writer.close()
