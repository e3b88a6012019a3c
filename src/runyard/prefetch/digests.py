"""What content must hash to, and hashing of it while it arrives."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

_READ_SIZE = 1 << 20


@dataclass(frozen=True)
class Digest:
    """`git` is how a hub names small files: sha1 of a header with the size, then the content."""

    kind: Literal["sha256", "git", "md5"]
    value: str


class Hashing:
    """The sha256 of what was fed, and whether it is what was expected."""

    def __init__(self, expected: Digest | None, size: int | None) -> None:
        self._expected = expected
        self._sha256 = hashlib.sha256()
        self._other = None
        if expected is not None and expected.kind == "md5":
            self._other = hashlib.md5(usedforsecurity=False)
        if expected is not None and expected.kind == "git":
            self._other = hashlib.sha1(b"blob %d\0" % (size or 0), usedforsecurity=False)

    def feed(self, data: bytes | memoryview) -> None:
        self._sha256.update(data)
        if self._other is not None:
            self._other.update(data)

    def feed_file(self, fd: int, length: int) -> None:
        position = 0
        while position < length:
            data = os.pread(fd, min(_READ_SIZE, length - position), position)
            if not data:
                raise OSError("the file became shorter")
            self.feed(data)
            position += len(data)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    @property
    def compared(self) -> str:
        """In the kind that was expected."""
        return self.sha256 if self._other is None else self._other.hexdigest()

    def as_expected(self) -> bool:
        return self._expected is None or self.compared == self._expected.value


def of_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_folder(files: Iterable[tuple[str, str]]) -> str:
    """Of (path, sha256) pairs: what `sha256sum` prints for them in order of path, hashed."""
    listing = sorted((path.encode("utf-8", "surrogateescape"), value) for path, value in files)
    whole = hashlib.sha256()
    for path, value in listing:
        whole.update(b"%s  %s\n" % (value.encode(), path))
    return whole.hexdigest()
