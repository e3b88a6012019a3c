"""A loopback server for downloads that misbehaves as told: slow, cut, busy, forgetful of ranges;
on request also a hub and an object store. It remembers every request."""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from runyard.prefetch import signing


def content(length: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(length)


@dataclass
class Served:
    """A file of the server. `steps` are used up one per request, then the file is served well."""

    content: bytes
    etag: str | None = ""  # "" is made from the content
    last_modified: str | None = None
    ranges: bool = True
    length: bool = True  # without it the answer is chunked
    rate: float | None = None  # bytes a second
    needs: tuple[str, str] | None = None  # a header and its value
    steps: list[dict] = field(default_factory=list)

    def tag(self) -> str | None:
        if self.etag == "":
            return f'"{hashlib.md5(self.content).hexdigest()}"'
        return self.etag


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    status: int = 0
    sent: int = 0

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


class DownloadServer:
    def __init__(self, tls=None) -> None:
        self.files: dict[str, Served] = {}
        self.seen: list[Seen] = []
        self.answers: dict[str, Callable] = {}  # by path prefix; for hubs and object stores
        self.ended = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                server.serve(self)

            do_HEAD = do_GET

            def log_message(self, *arguments):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # a connection that finds no place waits for a second

            def handle_error(self, request, client_address):
                pass  # clients are killed on purpose

        self._http = Quiet(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.port = self._http.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def put(self, path: str, content: bytes, **options) -> str:
        self.files[path] = Served(content, **options)
        return self.url + path

    def asked(self, path: str, method: str = "GET") -> list[Seen]:
        return [one for one in self.seen if one.path == path and one.method == method]

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(handler.path).path)
        headers = {name.lower(): value for name, value in handler.headers.items()}
        seen = Seen(handler.command, path, headers)
        self.seen.append(seen)
        for prefix, answer in self.answers.items():
            if path.startswith(prefix) and answer(handler, seen):
                return
        served = self.files.get(path)
        if served is None:
            self.reply(handler, seen, 404, {}, b"no such file")
            return
        self._serve_file(handler, seen, served)

    def reply(self, handler, seen: Seen, status: int, headers: dict, body: bytes) -> None:
        seen.status = status
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD" and status != 304:
            handler.wfile.write(body)

    def _serve_file(self, handler, seen: Seen, served: Served) -> None:
        step = served.steps.pop(0) if served.steps else {}
        if "status" in step:
            self.reply(handler, seen, step["status"], step.get("headers", {}), b"told to")
            return
        if served.needs and seen.headers.get(served.needs[0]) != served.needs[1]:
            self.reply(handler, seen, 401, {}, b"who are you")
            return
        head = {}
        if served.tag():
            head["ETag"] = served.tag()
        if served.last_modified:
            head["Last-Modified"] = served.last_modified
        if self._unchanged(seen, served):
            self.reply(handler, seen, 304, {"Content-Length": "0", **head}, b"")
            return
        total, start = len(served.content), self._start(seen, served)
        if start is not None and start >= total:
            unsatisfied = {"Content-Range": f"bytes */{total}", **head}
            self.reply(handler, seen, 416, unsatisfied, b"")
            return
        status = 200
        if start is not None:
            status, head["Content-Range"] = 206, f"bytes {start}-{total - 1}/{total}"
        self._send(handler, seen, served, step, status, head, served.content[start or 0 :])

    def _send(self, handler, seen, served, step, status, head, body) -> None:
        seen.status = status
        handler.send_response(status)
        for name, value in head.items():
            handler.send_header(name, value)
        if served.length:
            handler.send_header("Content-Length", str(len(body)))
        else:
            handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        if handler.command == "HEAD":
            return
        if step.get("silent"):
            self.ended.wait()
            return
        cut = step.get("cut_after")
        while seen.sent < len(body):
            rate = step.get("rate", served.rate)  # a test may let go of a slow one
            piece = 1 << 16 if rate is None else max(1, min(1 << 16, int(rate / 50)))
            some = body[seen.sent : seen.sent + piece]
            if cut is not None:
                some = some[: cut - seen.sent]
            seen.sent += len(some)  # before it is sent: who has all of it may look here
            handler.wfile.write(some if served.length else b"%x\r\n%s\r\n" % (len(some), some))
            if cut is not None and seen.sent >= cut:
                handler.close_connection = True
                handler.connection.close()
                return
            if rate is not None and self.ended.wait(len(some) / rate):
                return
        if not served.length:
            handler.wfile.write(b"0\r\n\r\n")

    def _unchanged(self, seen: Seen, served: Served) -> bool:
        asked = seen.headers.get("if-none-match")
        if asked is not None:
            return asked == served.tag()
        since = seen.headers.get("if-modified-since")
        return since is not None and since == served.last_modified

    def _start(self, seen: Seen, served: Served) -> int | None:
        match = re.fullmatch(r"bytes=(\d+)-", seen.range or "")
        if match is None or not served.ranges:
            return None
        condition = seen.headers.get("if-range")
        if condition is not None and condition not in (served.tag(), served.last_modified):
            return None
        return int(match[1])


class Hub:
    """The part of a hub's API that listing and fetching need, in front of a server's files."""

    def __init__(self, server: DownloadServer, token: str | None = None, kind="models") -> None:
        self.server, self.token, self.kind = server, token, kind
        self.commit = "c" * 40
        self.trees: dict[str, list[dict]] = {}
        self.page = 1000
        self.has_tree = True
        self.cdn: DownloadServer | None = None  # where large files are redirected to
        self.down = False
        server.answers["/"] = self._answer

    def add(self, repo: str, path: str, content: bytes, large: bool = False, **options) -> None:
        entry = {"type": "file", "path": path, "size": len(content)}
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        entry["oid"] = blob
        if large:
            sha256 = hashlib.sha256(content).hexdigest()
            entry["oid"] = "d" * 40
            entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 130}
        self.trees.setdefault(repo, [{"type": "directory", "path": "sub", "size": 0}])
        self.trees[repo].append(entry)
        home = self.cdn if large and self.cdn else self.server
        home.put(self.resolve(repo, path), content, **options)

    def resolve(self, repo: str, path: str) -> str:
        folder = repo if self.kind == "models" else f"{self.kind}/{repo}"
        return f"/{folder}/resolve/{self.commit}/{path}"

    def _answer(self, handler, seen: Seen) -> bool:
        if self.down:
            self.server.reply(handler, seen, 503, {}, b"")
            return True
        if self.token and seen.headers.get("authorization") != f"Bearer {self.token}":
            told = {"X-Error-Code": "GatedRepo"}
            self.server.reply(handler, seen, 401, told, b"")
            return True
        if not seen.path.startswith(f"/api/{self.kind}/"):
            if self.cdn and seen.path in self.cdn.files:
                there = {"Location": self.cdn.url + seen.path}
                self.server.reply(handler, seen, 302, there, b"")
                return True
            return False
        repo, _, rest = seen.path.removeprefix(f"/api/{self.kind}/").rpartition("/")
        repo, _, what = repo.rpartition("/")
        self._api(handler, seen, repo, what, rest)
        return True

    def _api(self, handler, seen, repo, what, revision) -> None:
        if repo not in self.trees or revision not in ("main", "v1", self.commit):
            self.server.reply(handler, seen, 404, {"X-Error-Code": "RepoNotFound"}, b"")
            return
        entries = self.trees[repo]
        if what == "revision":
            names = [{"rfilename": e["path"]} for e in entries if e["type"] == "file"]
            answer, head = {"id": repo, "sha": self.commit, "siblings": names}, {}
        elif not self.has_tree:
            self.server.reply(handler, seen, 404, {}, b"")
            return
        else:
            query = parse_qs(urlsplit(handler.path).query)
            start = int(query.get("cursor", ["0"])[0])
            answer, head = entries[start : start + self.page], {}
            if start + self.page < len(entries):
                path = urlsplit(handler.path).path
                following = f"{self.server.url}{path}?recursive=true&cursor={start + self.page}"
                head["Link"] = f'<{following}>; rel="next"'
        self.server.reply(handler, seen, 200, head, json.dumps(answer).encode())


class ObjectStore:
    """Objects of buckets, given only to requests whose signature is right."""

    def __init__(self, server: DownloadServer, credentials: signing.Credentials | None) -> None:
        self.server, self.credentials = server, credentials
        self.page = 1000
        self.region = "eu-test-1"
        server.answers["/"] = self._answer

    def put(self, bucket: str, key: str, content: bytes, **options) -> str:
        self.server.put(f"/{bucket}/{key}", content, **options)
        return f"s3://{bucket}/{key}"

    def _answer(self, handler, seen: Seen) -> bool:
        if self.credentials is not None and not self._signed(handler, seen):
            self.server.reply(handler, seen, 403, {}, b"SignatureDoesNotMatch")
            return True
        query = parse_qs(urlsplit(handler.path).query)
        if query.get("list-type") != ["2"]:
            return False
        bucket = seen.path.strip("/")
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", [""])[0]
        keys = sorted(
            path.removeprefix(f"/{bucket}/")
            for path in self.server.files
            if path.startswith(f"/{bucket}/{prefix}")
        )
        keys = [key for key in keys if key > after]
        body = self._listing(bucket, keys)
        self.server.reply(handler, seen, 200, {"Content-Type": "application/xml"}, body)
        return True

    def _listing(self, bucket: str, keys: list[str]) -> bytes:
        shown, more = keys[: self.page], len(keys) > self.page
        contents = ""
        for key in shown:
            served = self.server.files[f"/{bucket}/{key}"]
            contents += (
                f"<Contents><Key>{escape(key)}</Key><Size>{len(served.content)}</Size>"
                f"<ETag>{escape(served.tag() or '')}</ETag></Contents>"
            )
        last = escape(shown[-1]) if shown else ""
        token = f"<NextContinuationToken>{last}</NextContinuationToken>"
        return (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
            f"{token if more else ''}{contents}</ListBucketResult>"
        ).encode()

    def _signed(self, handler, seen: Seen) -> bool:
        given = seen.headers.get("authorization", "")
        time_text = seen.headers.get("x-amz-date", "")
        try:
            at = datetime.strptime(time_text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            return False
        if abs(time.time() - at.timestamp()) > 900:
            return False
        url = f"http://{seen.headers['host']}{handler.path}"
        wanted = signing.sign(handler.command, url, {}, self.credentials, self.region, at)
        return given == wanted["Authorization"]
