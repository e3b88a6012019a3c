"""What an s3 address holds: one object, or everything below a prefix."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from xml.etree import ElementTree

from runyard.prefetch import addresses, cache, object_access, signing
from runyard.prefetch.digests import Digest
from runyard.prefetch.failures import Failure
from runyard.prefetch.http_requests import Answer, refuse
from runyard.prefetch.listed import Asking, Listed
from runyard.prefetch.remote_file import RemoteFile

_MD5 = re.compile(r"[0-9a-f]{32}")
_REGION_HEADER = "x-amz-bucket-region"


class Bucket:
    """Requests to one bucket, in the region it turns out to be in."""

    def __init__(self, name: str, access: object_access.Access, asking: Asking) -> None:
        self._name, self._access, self._asking = name, access, asking
        self._region = access.region

    def listed(self, uri: str, key: str) -> Listed:
        if key and not key.endswith("/"):
            found = self._asking.until_answered(lambda: self._object(uri, key))
            if found is not None:
                return Listed((found,))
            key += "/"
        files = self._below(uri, key)
        if not files:
            raise Failure("not_found", None, reason="empty_prefix")
        return Listed(tuple(files), folder=True)

    def authorize(self, method: str, url: str) -> Mapping[str, str]:
        if self._access.credentials is None:
            return {}
        now = datetime.now(UTC)
        return signing.sign(method, url, {}, self._access.credentials, self._region, now)

    def _object(self, uri: str, key: str) -> RemoteFile | None:
        url = self._url(key)
        with self._ask("HEAD", url) as answer:
            if answer.status == 404:
                return None
            if answer.status != 200:
                refuse(answer)
            length = answer.headers.get("Content-Length", "")
            etag = answer.headers.get("ETag", "")
            # The tag of an object with a key of its own is not the hash of its content.
            plain = answer.headers.get("x-amz-server-side-encryption", "AES256") == "AES256"
            plain &= "x-amz-server-side-encryption-customer-algorithm" not in answer.headers
            return self._file(uri, key, "", int(length) if length.isdigit() else None, etag, plain)

    def _below(self, uri: str, prefix: str) -> list[RemoteFile]:
        files: list[RemoteFile] = []
        token = ""
        while True:
            page = self._asking.until_answered(lambda token=token: self._page(prefix, token))  # type: ignore[misc]
            for entry in page.iterfind("{*}Contents"):
                key, size = entry.findtext("{*}Key", ""), entry.findtext("{*}Size", "")
                if key.endswith("/") or not key.startswith(prefix):
                    continue  # folders that some tools leave as empty objects
                path = addresses.safe_path(key.removeprefix(prefix))
                etag = entry.findtext("{*}ETag", "")
                size_known = int(size) if size.isdigit() else None
                files.append(self._file(uri, key, path, size_known, etag, plain=False))
            token = page.findtext("{*}NextContinuationToken", "")
            if page.findtext("{*}IsTruncated", "false") != "true" or not token:
                return files

    def _page(self, prefix: str, token: str) -> ElementTree.Element:
        query = {"list-type": "2", "prefix": prefix}
        if token:
            query["continuation-token"] = token
        asked = "&".join(f"{name}={signing.encode(value)}" for name, value in query.items())
        url = f"{self._base()}?{asked}"
        with self._ask("GET", url) as answer:
            if answer.status != 200:
                refuse(answer)
            try:
                return ElementTree.fromstring(answer.read_all())
            except ElementTree.ParseError:
                raise Failure("bad_answer", None, reason="listing") from None

    def _file(
        self, uri: str, key: str, path: str, size: int | None, etag: str, plain: bool
    ) -> RemoteFile:
        tag = etag.strip('"').lower()
        credentials = self._access.credentials
        url = self._url(key)
        return RemoteFile(
            uri=addresses.masked(uri),
            url=url,
            authorize=self.authorize,
            path=path,
            source=cache.source_key(url, credentials.access_key if credentials else ""),
            size=size,
            digest=Digest("md5", tag) if plain and _MD5.fullmatch(tag) else None,
            version=tag or None,
        )

    def _ask(self, method: str, url: str) -> Answer:
        answer = self._asking.connections.ask(method, url, authorize=self.authorize)
        region = answer.headers.get(_REGION_HEADER)
        elsewhere = answer.status in (301, 400, 403) and region and region != self._region
        if not elsewhere or self._access.endpoint:
            return answer
        with answer:
            before, self._region = self._base(), str(region)
        url = self._base() + url.removeprefix(before)
        return self._asking.connections.ask(method, url, authorize=self.authorize)

    def _base(self) -> str:
        return f"{self._access.base(self._region)}/{self._name}"

    def _url(self, key: str) -> str:
        return f"{self._base()}/{signing.encode(key, safe='/')}"


def listed(uri: str, address: addresses.ObjectAddress, asking: Asking) -> Listed:
    access = object_access.from_environment(os.environ)
    if access.endpoint is not None:
        addresses.check_endpoint(access.endpoint, uri)
    return Bucket(address.bucket, access, asking).listed(uri, address.key)
