"""The web page as it was built: its files, and index.html for every path that is a page of it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from runyard.api import session_cookie, web_headers

BUILT = Path(__file__).resolve().parent.parent / "web"
_INDEX = "index.html"
_ASSETS = "/assets/"
_NOT_PAGES = re.compile(r"/(api|cancel_job|healthz|readyz|metrics|docs|openapi\.json)(/|$)")
_BASE = re.compile(r"<base\s+href=\"[^\"]*\"\s*/?>")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_PACKED = (("br", ".br"), ("gzip", ".gz"))
_FOREVER = "public, max-age=31536000, immutable"  # their names change with what is in them
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Runyard</title>
<h1>Runyard</h1><div id="not-built"><p>The server works, but its web page was not built.</p>
<p>In a checkout, <code>make web</code> builds it; a released package has it inside.</p>
<p>Until then: <code>runyard top</code> in a terminal, and <a href="docs">the API</a>.</p></div>
"""


class WebFiles:
    """Needs no key: there is nothing in these files that is not in the package."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder

    def serves(self, scope: Scope) -> bool:
        """Whether this is a request for a page or a file of it, and none of the API."""
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD") or _NOT_PAGES.match(path):
            return False
        if path == "/" or path.startswith(_ASSETS):
            return True
        return "text/html" in session_cookie.header(scope, b"accept") or self._at_root(path)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith(_ASSETS) or self._at_root(path):
            answer = await run_in_threadpool(self._file, scope, path)
        else:
            answer = await run_in_threadpool(self._page, scope)
        await answer(scope, receive, send)

    def _at_root(self, path: str) -> bool:
        """The few files beside index.html, by their plain names."""
        name = path[1:]
        known = _PLAIN_NAME.fullmatch(name) is not None and name != _INDEX
        return known and Path(name).suffix in _TYPES and (self._folder / name).is_file()

    def _page(self, scope: Scope) -> Response:
        headers = web_headers.for_page(scope)
        try:
            text = (self._folder / _INDEX).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return HTMLResponse(_NOT_BUILT, headers={**headers, "Cache-Control": "no-store"})
        base = f'<base href="{session_cookie.root_path(scope)}/" />'
        text, placed = _BASE.subn(base, text, count=1)
        if not placed:
            text = text.replace("<head>", f"<head>{base}", 1)
        data = text.encode()
        headers["ETag"] = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        headers["Vary"] = "X-Forwarded-Prefix, X-Forwarded-Host, Host"
        if _has(scope, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return HTMLResponse(data, headers=headers)

    def _file(self, scope: Scope, path: str) -> Response:
        found = self._confined(path)
        if found is None:
            return PlainTextResponse("Not found.\n", 404, headers=web_headers.FOR_FILES)
        headers = {**web_headers.FOR_FILES, "Vary": "Accept-Encoding"}
        headers["Cache-Control"] = _FOREVER if path.startswith(_ASSETS) else "no-cache"
        kind = _TYPES.get(Path(found).suffix, "application/octet-stream")
        sent, packing = _packed(found, session_cookie.header(scope, b"accept-encoding"))
        if packing:
            headers["Content-Encoding"] = packing
        told = os.stat(sent)
        headers["ETag"] = f'"{told.st_mtime_ns:x}-{told.st_size:x}{packing[:1]}"'
        if _has(scope, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return FileResponse(sent, headers=headers, media_type=kind, stat_result=told)

    def _confined(self, path: str) -> str | None:
        """The file of this path, when it is one of ours and no way out leads to it."""
        names = path[1:].split("/")
        if not all(_PLAIN_NAME.fullmatch(name) for name in names):
            return None
        root = os.path.realpath(self._folder)
        found = os.path.realpath(os.path.join(root, *names))
        if not found.startswith(root + os.sep):
            return None
        try:
            return found if stat.S_ISREG(os.stat(found).st_mode) else None
        except OSError:
            return None


def _packed(path: str, accepted: str) -> tuple[str, str]:
    """The file to send and how it is packed: as it was built, where the browser reads that."""
    wanted = {}
    for part in accepted.lower().split(","):
        name, _, weight = part.strip().partition(";")
        wanted[name.strip()] = re.fullmatch(r"\s*q=0(\.0*)?\s*", weight) is None
    for name, ending in _PACKED:
        if wanted.get(name) and os.path.isfile(path + ending):
            return path + ending, name
    return path, ""


def _has(scope: Scope, tag: str) -> bool:
    known = session_cookie.header(scope, b"if-none-match")
    return any(one.strip().removeprefix("W/") in (tag, "*") for one in known.split(","))
