"""One file at some address: how to ask for it, and what is known of it before it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.prefetch import cache, digests
from runyard.prefetch.http_requests import Authorize


@dataclass(frozen=True)
class RemoteFile:
    """`version` changes whenever the content does; where there is none, nor a digest, the server
    is asked each time whether the file changed."""

    uri: str  # masked
    url: str
    authorize: Authorize
    path: str  # below the item's folder; empty where the item is this one file
    source: str  # key of the address it is from
    size: int | None = None
    digest: digests.Digest | None = None
    version: str | None = None

    @property
    def key(self) -> str:
        """Of the cache entry: the same content from two addresses is one entry, where that is
        known beforehand."""
        if self.digest is not None and self.digest.kind == "sha256":
            return cache.blob_key(self.digest.value)
        if self.digest is not None and self.digest.kind == "git":
            return f"git-{self.digest.value}"
        return self.source
