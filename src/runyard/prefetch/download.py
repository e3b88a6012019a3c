"""Bringing one file into its partial, over as many connections as that takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from runyard.prefetch.backoff import Patience
from runyard.prefetch.failures import Failure, Trouble
from runyard.prefetch.http_requests import Answer, Connections, refuse
from runyard.prefetch.partial import Partial, Source
from runyard.prefetch.progress import Tracker
from runyard.prefetch.remote_file import RemoteFile
from runyard.prefetch.room import Room

CHUNK = 1 << 18
COUNT_EVERY = 4 << 20  # of an answer that does not say how long it is
_RANGE = re.compile(r"bytes (\d+)-\d*/(\d+|\*)")
_UNSATISFIED = re.compile(r"bytes \*/(\d+)")


class Download:
    """Of one file whose entry is locked by us."""

    def __init__(
        self,
        file: RemoteFile,
        partial: Partial,
        connections: Connections,
        room: Room,
        tracker: Tracker,
        number: int,
    ) -> None:
        self._file, self._partial, self._connections = file, partial, connections
        self._room, self._tracker, self._number = room, tracker, number
        self._counted = 0
        self.resumed_at = 0  # the last byte it went on from

    def complete(self, known: Source | None, patience: Patience) -> bool:
        """True when all of it is in the partial; False when the server says that the version
        `known` is still the one it has."""
        self._drop_other_version()
        if self._partial.length:
            # Before the request: a server does not wait while we read what we have.
            self._tracker.show(self._number, "checking", self._partial.length, self._file.size)
            self._partial.hash_what_is_here()
        while True:
            before = self._partial.length
            try:
                return self._ask(known)
            except Trouble as trouble:
                if self._partial.length > before:
                    patience.renew()
                patience.wait(trouble)

    def _drop_other_version(self) -> None:
        here, file = self._partial.source, self._file
        wrong_version = here.version != file.version
        wrong_size = file.size is not None and self._partial.length > file.size
        # Without any of these nothing could tell whether the rest belongs to the beginning.
        unsure = not (file.digest or file.version or here.etag or here.last_modified)
        if self._partial.length and (wrong_version or wrong_size or unsure):
            self._partial.begin(Source(uri=file.uri, version=file.version))

    def _ask(self, known: Source | None) -> bool:
        offset = self._partial.length
        if offset and offset == self._file.size and self._file.digest is not None:
            return True
        if self._file.size == 0 and self._file.digest is not None:
            self._begin(Source(self._file.uri, 0, version=self._file.version))
            return True
        self._show()
        headers = self._headers(offset, known)
        answer = self._connections.ask("GET", self._file.url, headers, self._file.authorize)
        with answer:
            if answer.status == 304 and known is not None and not offset:
                return False
            if answer.status == 416 and offset:
                return self._beyond_the_end(answer, offset)
            if answer.status == 206 and offset:
                self._continue_at(answer, offset)
            elif answer.status == 200:
                self._start_over(answer)
            else:
                refuse(answer)
            self._take(answer)
        return True

    def _headers(self, offset: int, known: Source | None) -> dict[str, str]:
        if offset:
            headers = {"Range": f"bytes={offset}-"}
            validator = self._partial.source.validator
            # With a hash to check against, another server's tag for the same content is no reason
            # to start over.
            if validator and self._file.digest is None:
                headers["If-Range"] = validator
            return headers
        if known is not None and known.etag:
            return {"If-None-Match": known.etag}
        if known is not None and known.last_modified:
            return {"If-Modified-Since": known.last_modified}
        return {}

    def _continue_at(self, answer: Answer, offset: int) -> None:
        match = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if match is None or int(match[1]) != offset:
            self._give_up_beginning()
            raise Trouble("wrong_range")
        total = None if match[2] == "*" else int(match[2])
        here, there = self._partial.source, self._source_of(answer, total)
        changed = self._file.digest is None and here.etag and there.etag not in (None, here.etag)
        if changed or (here.size is not None and total is not None and total != here.size):
            self._give_up_beginning()
            raise Trouble("changed")
        self._check_size(total)
        there = replace(there, size=here.size if total is None else total)
        self._promise(there.size, lambda: self._partial.learn(there))
        self.resumed_at = offset

    def _start_over(self, answer: Answer) -> None:
        length = answer.headers.get("Content-Length", "")
        total = int(length) if length.isascii() and length.isdigit() else self._file.size
        self._check_size(total)
        self._begin(self._source_of(answer, total))
        self.resumed_at = 0

    def _beyond_the_end(self, answer: Answer, offset: int) -> bool:
        match = _UNSATISFIED.fullmatch(answer.headers.get("Content-Range", "").strip())
        if match is not None and int(match[1]) == offset:
            return True
        self._give_up_beginning()
        raise Trouble("changed")

    def _take(self, answer: Answer) -> None:
        size = self._partial.source.size
        self._show()
        while data := answer.read_some(CHUNK):
            self._partial.append(data)
            self._tracker.arrived(self._number, len(data))
            if size is None and self._partial.length >= self._counted + COUNT_EVERY:
                self._promise(None, lambda: None)
        if size is not None and self._partial.length < size:
            raise Trouble("cut")

    def _begin(self, source: Source) -> None:
        self._promise(source.size, lambda: self._partial.begin(source))
        self._show()

    def _promise(self, size: int | None, begin: Callable[[], None]) -> None:
        """An unknown length is promised step by step, so that an endless answer meets the
        quota."""
        self._counted = self._partial.length
        self._room.reserve(self._file.key, self._counted if size is None else size, begin)

    def _give_up_beginning(self) -> None:
        self._partial.begin(Source(uri=self._file.uri, version=self._file.version))

    def _check_size(self, total: int | None) -> None:
        wanted = self._file.size
        if wanted is not None and total is not None and total != wanted:
            raise Failure("hash_mismatch", None, expected_bytes=wanted, actual_bytes=total)

    def _source_of(self, answer: Answer, size: int | None) -> Source:
        return Source(
            uri=self._file.uri,
            size=size,
            etag=answer.headers.get("ETag"),
            last_modified=answer.headers.get("Last-Modified"),
            version=self._file.version,
        )

    def _show(self) -> None:
        partial = self._partial
        size = partial.source.size if partial.source.size is not None else self._file.size
        self._tracker.show(self._number, "fetching", partial.length, size)
