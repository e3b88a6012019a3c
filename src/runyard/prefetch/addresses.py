"""Reading of addresses (hf, https, http, s3, file), their names and their masked form. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, quote, unquote, urlsplit

from runyard.prefetch.failures import Failure

_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_REPO_PART = re.compile(r"[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"refs/(?:pr|convert)/[^/]+|[^/]+")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
DEFAULT_PORTS = {"http": 80, "https": 443}
LONGEST_NAME = 255


@dataclass(frozen=True)
class HubAddress:
    """A model or dataset of a hub, or the part of it below `path`."""

    kind: Literal["models", "datasets"]
    repo: str
    revision: str
    path: str


@dataclass(frozen=True)
class WebAddress:
    """A plain download; user and password are taken out of `url`."""

    url: str
    user: str | None
    password: str | None


@dataclass(frozen=True)
class ObjectAddress:
    """An object of a bucket, or everything below a prefix."""

    bucket: str
    key: str


@dataclass(frozen=True)
class FileAddress:
    """A file or folder of this machine."""

    path: str


Address = HubAddress | WebAddress | ObjectAddress | FileAddress


def parse(uri: str) -> tuple[Address, str]:
    """The address and the name it has below the link directory if the plan gives none.
    A fragment names it: `https://host/a/weights.bin#teacher.bin`."""
    if _UNPRINTABLE.search(uri):
        raise bad(uri, "unprintable")
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 (raises where it is no number)
    except ValueError:
        raise bad(uri, "malformed") from None
    read = _READERS.get(parts.scheme)
    if read is None:
        raise bad(uri, "scheme", scheme=parts.scheme)
    address, name = read(uri, parts)
    return address, check_name(unquote(parts.fragment) or name, uri)


def check_name(name: str, uri: str) -> str:
    """A name is one part of a path, visible, and leads nowhere else."""
    if not is_plain_part(name) or name.startswith("."):
        raise bad(uri, "name", name=name)
    return name


def is_plain_part(part: str) -> bool:
    return not (
        part in ("", ".", "..")
        or "/" in part
        or "\\" in part
        or _CONTROL.search(part)
        or not _encodable(part)
        or len(part.encode()) > LONGEST_NAME
    )


def safe_path(given: str) -> str:
    """A path that a server gave, if it stays below the folder it is joined to."""
    if not isinstance(given, str) or len(given) > 2000:
        raise Failure("bad_answer", None, reason="unsafe_path", path=str(given)[:200])
    if not all(is_plain_part(part) for part in given.split("/")):
        raise Failure("bad_answer", None, reason="unsafe_path", path=given[:200])
    return given


def masked(uri: str) -> str:
    """The address as people may see it: no user, no password, no query, which may be signed."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return _UNPRINTABLE.sub("?", uri)[:500]
    rest, _, _ = rest.partition("#")
    rest, query, _ = rest.partition("?")
    host, slash, path = rest.partition("/")
    user, at, host_only = host.rpartition("@")
    if at and scheme in ("http", "https", "s3", "file"):
        host = f"***@{host_only}" if user else host_only
    shown = f"{scheme}://{host}{slash}{path}{'?***' if query else ''}"
    return _UNPRINTABLE.sub("?", shown)[:500]


def check_endpoint(endpoint: str, uri: str) -> None:
    """A server that the environment names instead of the usual one."""
    if not endpoint.startswith(("http://", "https://")) or _UNPRINTABLE.search(endpoint):
        raise bad(uri, "endpoint")
    parse(f"{endpoint}/#endpoint")


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port: what a credential belongs to."""
    parts = urlsplit(url)
    port = parts.port if parts.port is not None else DEFAULT_PORTS.get(parts.scheme, 0)
    return parts.scheme, parts.hostname or "", port


def bad(uri: str, reason: str, **params: str) -> Failure:
    return Failure("bad_uri", masked(uri), reason=reason, **params)


def _hub(uri: str, parts: SplitResult) -> tuple[Address, str]:
    if parts.query:
        raise bad(uri, "query")
    text = uri.partition("://")[2].partition("#")[0]
    kind: Literal["models", "datasets"] = "models"
    first, _, rest = text.partition("/")
    if first in ("models", "datasets"):
        kind, text = first, rest  # type: ignore[assignment]
    elif first == "spaces":
        raise bad(uri, "spaces")
    before, at, after = text.partition("@")
    revision, path = "main", ""
    if at:
        match = _REVISION.match(after)
        if match is None:
            raise bad(uri, "revision")
        revision, path = unquote(match[0]), after[match.end() :]
        if _CONTROL.search(revision) or ".." in revision:
            raise bad(uri, "revision")
    pieces = before.split("/")
    repo, path = "/".join(pieces[:2]), "/".join(pieces[2:]) + path
    if not all(_REPO_PART.fullmatch(piece) and ".." not in piece for piece in pieces[:2]):
        raise bad(uri, "repo")
    path = unquote(path).strip("/")
    if path and not all(is_plain_part(part) for part in path.split("/")):
        raise bad(uri, "path")
    name = path.rpartition("/")[2] or repo.replace("/", "--")
    return HubAddress(kind, repo, revision, path), name


def _web(uri: str, parts: SplitResult) -> tuple[Address, str]:
    if not parts.hostname:
        raise bad(uri, "host")
    try:
        host = parts.hostname.encode("idna").decode()
    except UnicodeError:
        raise bad(uri, "host") from None
    host = f"[{host}]" if ":" in host else host
    if parts.port is not None:
        host += f":{parts.port}"
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    url = f"{parts.scheme}://{host}{path}" + (f"?{query}" if parts.query else "")
    user = unquote(parts.username) if parts.username is not None else None
    password = unquote(parts.password) if parts.password is not None else None
    return WebAddress(url, user, password), unquote(parts.path.rstrip("/").rpartition("/")[2])


def _object(uri: str, parts: SplitResult) -> tuple[Address, str]:
    bucket = parts.netloc
    text = uri.partition("://")[2].partition("#")[0]
    key = text.partition("/")[2]  # a question mark is an ordinary letter of a key
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise bad(uri, "bucket")
    key = unquote(key)
    if _CONTROL.search(key):
        raise bad(uri, "key")
    return ObjectAddress(bucket, key), key.rstrip("/").rpartition("/")[2] or bucket


def _file(uri: str, parts: SplitResult) -> tuple[Address, str]:
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise bad(uri, "file_path")
    return FileAddress(path), path.rstrip("/").rpartition("/")[2]


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_READERS = {"hf": _hub, "http": _web, "https": _web, "s3": _object, "file": _file}
