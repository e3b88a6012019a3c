"""What a model or dataset of a hub holds, at one commit; and who we are for the hub."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urljoin

from runyard.prefetch import addresses, cache
from runyard.prefetch.digests import Digest
from runyard.prefetch.failures import Failure
from runyard.prefetch.http_requests import refuse
from runyard.prefetch.listed import Asking, Listed
from runyard.prefetch.remote_file import RemoteFile

DEFAULT_ENDPOINT = "https://huggingface.co"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NEXT_PAGE = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')
_TRUE = {"1", "true", "yes", "on"}

Entry = dict[str, Any]  # path, size, oid (git), sha256: as far as the hub says


class Hub:
    """One repo of a hub, asked with our token."""

    def __init__(
        self, address: addresses.HubAddress, environment: Mapping[str, str], asking: Asking
    ) -> None:
        self._address, self._asking = address, asking
        self.endpoint = (environment.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
        self._token = token_of(environment)
        # Only this address is ever told the token.
        self._own = addresses.origin(self.endpoint)

    def authorize(self, method: str, url: str) -> Mapping[str, str]:  # noqa: ARG002
        if self._token is None or addresses.origin(url) != self._own:
            return {}
        return {"Authorization": f"Bearer {self._token}"}

    def identity(self, revision: str) -> str:
        """What a listing kept for later belongs to: also to the token, as a private repo must
        not be listed for somebody who could not see it."""
        address = self._address
        parts = (self.endpoint, address.kind, address.repo, revision, self._token or "")
        return cache.source_key("hub-listing", *parts)

    def commit_and_entries(self) -> tuple[str, list[Entry]]:
        info = self._json(f"{self._api()}/revision/{quote(self._address.revision, safe='')}")[0]
        commit = info.get("sha") if isinstance(info, dict) else None
        if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
            raise Failure("bad_answer", None, reason="no_commit")
        try:
            return commit, self._tree(commit)
        except Failure as failure:
            # Some mirrors have no tree; the siblings name the files, if not their hashes.
            siblings = info.get("siblings")
            if failure.code != "not_found" or not isinstance(siblings, list):
                raise
            return commit, [_sibling(each) for each in siblings]

    def files(self, uri: str, commit: str, entries: list[Entry]) -> Listed:
        below = self._address.path
        exact = [entry for entry in entries if entry["path"] == below]
        if below and exact:
            return Listed((self._file(uri, commit, exact[0], ""),), revision=commit)
        prefix = f"{below}/" if below else ""
        inside = [entry for entry in entries if entry["path"].startswith(prefix)]
        if not inside:
            raise Failure("not_found", None, reason="no_files", path=below)
        files = (
            self._file(uri, commit, entry, entry["path"].removeprefix(prefix)) for entry in inside
        )
        return Listed(tuple(files), folder=True, revision=commit)

    def _file(self, uri: str, commit: str, entry: Entry, path: str) -> RemoteFile:
        kind, repo = self._address.kind, self._address.repo
        folder = repo if kind == "models" else f"{kind}/{repo}"
        url = f"{self.endpoint}/{folder}/resolve/{commit}/{quote(entry['path'])}"
        digest = None
        if entry.get("sha256"):
            digest = Digest("sha256", entry["sha256"])
        elif entry.get("oid") and entry.get("size") is not None:
            digest = Digest("git", entry["oid"])
        return RemoteFile(
            uri=addresses.masked(uri),
            url=url,
            authorize=self.authorize,
            path=path,
            source=cache.source_key(url, self._token or ""),
            size=entry.get("size"),
            digest=digest,
            version=None if digest else commit,
        )

    def _tree(self, commit: str) -> list[Entry]:
        entries: list[Entry] = []
        url: str | None = f"{self._api()}/tree/{commit}?recursive=true"
        while url is not None:
            page, next_url = self._json(url)
            if not isinstance(page, list):
                raise Failure("bad_answer", None, reason="tree")
            entries += [_entry(each) for each in page if _is_file(each)]
            url = next_url
        return entries

    def _json(self, url: str) -> tuple[Any, str | None]:
        return self._asking.until_answered(lambda: self._json_once(url))

    def _json_once(self, url: str) -> tuple[Any, str | None]:
        with self._asking.connections.ask("GET", url, authorize=self.authorize) as answer:
            if answer.status != 200:
                refuse(answer)
            body = answer.read_all()
            link = _NEXT_PAGE.search(answer.headers.get("Link", ""))
            following = urljoin(answer.url, link[1]) if link else None
        if following and not following.startswith(("http://", "https://")):
            raise Failure("bad_answer", None, reason="next_page")
        try:
            return json.loads(body), following
        except ValueError:
            raise Failure("bad_answer", None, reason="json") from None

    def _api(self) -> str:
        return f"{self.endpoint}/api/{self._address.kind}/{self._address.repo}"


def listed(
    uri: str, address: addresses.HubAddress, asking: Asking, kept: cache.Cache
) -> tuple[Listed, bool]:
    """The files, and whether the hub itself said so: a commit never changes, and a hub out of
    reach is replaced by what it said last."""
    hub = Hub(address, os.environ, asking)
    addresses.check_endpoint(hub.endpoint, uri)
    path = kept.path("records", f"{hub.identity(address.revision)}.json")
    before = cache.read_json(path)
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE
    if before and (offline or _COMMIT.fullmatch(address.revision)):
        return hub.files(uri, before["commit"], before["entries"]), True
    if offline:
        raise Failure("network", None, reason="offline")
    try:
        commit, entries = hub.commit_and_entries()
    except Failure as failure:
        if failure.code != "network" or not before:
            raise
        return hub.files(uri, before["commit"], before["entries"]), False
    cache.write_json(path, {"commit": commit, "entries": entries})
    return hub.files(uri, commit, entries), True


def token_of(environment: Mapping[str, str]) -> str | None:
    """HF_TOKEN, else the file where the hub's own tools keep it."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if token := environment.get(name, "").strip():
            return token
    cache_home = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', '')}/.cache"
    home = environment.get("HF_HOME") or f"{cache_home}/huggingface"
    path = environment.get("HF_TOKEN_PATH") or f"{home}/token"
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(4096).strip() or None
    except (OSError, ValueError):
        return None


def _is_file(given: Any) -> bool:
    return isinstance(given, dict) and given.get("type", "file") == "file"


def _entry(given: Any) -> Entry:
    entry: Entry = {"path": addresses.safe_path(given.get("path"))}
    large = given.get("lfs")
    if isinstance(large, dict):
        entry |= {"size": _count(large.get("size")), "sha256": _hex(large.get("oid"), _SHA256)}
    else:
        entry |= {"size": _count(given.get("size")), "oid": _hex(given.get("oid"), _COMMIT)}
    return entry


def _sibling(given: Any) -> Entry:
    name = given.get("rfilename") if isinstance(given, dict) else None
    return {"path": addresses.safe_path(name)}  # type: ignore[arg-type]


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if whole else None


def _hex(value: Any, shape: re.Pattern[str]) -> str | None:
    if not isinstance(value, str):
        return None
    value = value.removeprefix("sha256:").lower()
    return value if shape.fullmatch(value) else None
