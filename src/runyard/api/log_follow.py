"""A log as server-sent events while it is written. Waits in the event loop; holds no thread.

One event per line, its id `attempt:byte` being where the next line begins, so that a client that
comes back with Last-Event-ID misses nothing and sees nothing twice. `partial` shows an unfinished
line (a progress bar), and is replaced by the next event; `gap` tells of bytes dropped from the
middle; `attempt` begins the log of another attempt; `end` says that the job has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from runyard.api.json_body import dumped
from runyard.domain import log_lines, states
from runyard.domain.states import AttemptStatus
from runyard.engine.hub import Watch
from runyard.engine.read.views import JobView
from runyard.engine.yard import Yard
from runyard.logs.growing_log import GrowingLog

_READ = 256 * 1024
_FASTEST_S = 0.1
_SLOWEST_S = 0.5
_PARTIAL_EVERY_S = 0.25
_COMMENT_EVERY_S = 15.0
_LOOK_AGAIN_S = 5.0
_LONGEST_PART = 1024 * 1024  # of a line without an end, kept in memory


@dataclass(slots=True)
class Following:
    """What to follow, and from where."""

    yard: Yard
    ref: str
    attempt: int | None  # None: whichever is newest, also those that come later
    rank: int
    offset: int
    grep: str = ""
    service: str = ""

    def log_path(self, attempt: int | None) -> tuple[str, bool]:
        return self.yard.log_path(self.ref, attempt, self.rank, self.service)


async def events(asked: Following, view: JobView, number: int) -> AsyncIterator[bytes]:
    """Beginning with attempt `number` (0: none yet)."""
    with asked.yard.hub.watch(view.job.id) as watch:
        following = _Follower(asked, watch)
        sent = 0
        while True:
            if number != sent:
                async for chunk in following.attempt(number):
                    yield chunk
                sent = number
            if watch.closing:
                return  # without an end: the client comes back and goes on
            view = await run_in_threadpool(asked.yard.job, asked.ref)
            if asked.attempt is None and view.job.attempt_number > number:
                asked.offset = 0 if sent else asked.offset
                number += 1
                yield _event("attempt", dumped({"number": number}))
            elif asked.attempt is not None or view.job.status in states.ENDED:
                yield _end(view, number)
                return
            else:
                yield await following.idle()  # between two attempts, or before the first


def _end(view: JobView, number: int) -> bytes:
    answer = {"status": view.job.status.value, "job_id": view.job.ref, "attempt": number or None}
    return _event("end", dumped(answer))


def _event(kind: str, data: bytes, ident: str = "") -> bytes:
    head = f"event: {kind}\n" + (f"id: {ident}\n" if ident else "")
    return head.encode() + b"data: " + data + b"\n\n"


class _Follower:
    def __init__(self, asked: Following, watch: Watch) -> None:
        self._asked = asked
        self._watch = watch
        self._spoke_at = time.monotonic()
        self._looked_at = 0.0

    async def idle(self) -> bytes:
        """Wait for news of the job; a comment when it takes long."""
        await self._watch.wait(_LOOK_AGAIN_S)
        if time.monotonic() - self._spoke_at < _COMMENT_EVERY_S:
            return b""
        self._spoke_at = time.monotonic()
        return b": waiting\n\n"

    async def attempt(self, number: int) -> AsyncIterator[bytes]:
        """Everything of one attempt's log from `offset` on, until it has ended and all is sent."""
        asked = self._asked
        path, ended = await run_in_threadpool(asked.log_path, number)
        reading = _Reading(path, asked.offset, number, asked.grep)
        pause_s = _FASTEST_S
        try:
            while True:
                chunk = reading.more()
                if chunk is not None:
                    pause_s = _FASTEST_S
                    if chunk:
                        self._spoke_at = time.monotonic()
                        yield chunk
                    await asyncio.sleep(0)
                    continue
                if ended or self._watch.closing:
                    break
                if part := reading.partial():
                    self._spoke_at = time.monotonic()
                    yield part
                changed = await self._watch.wait(pause_s)
                pause_s = min(pause_s * 1.5, _SLOWEST_S)
                ended = await self._has_ended(number, changed)
                if time.monotonic() - self._spoke_at > _COMMENT_EVERY_S:
                    self._spoke_at = time.monotonic()
                    yield b": waiting\n\n"
            if ended and (rest := reading.rest()):
                yield rest
        finally:
            reading.close()

    async def _has_ended(self, number: int, changed: bool) -> bool:
        now = time.monotonic()
        if not changed and now - self._looked_at < _LOOK_AGAIN_S:
            return False
        self._looked_at = now
        found = await run_in_threadpool(self._asked.yard.attempts, self._asked.ref)
        return all(
            attempt.status is AttemptStatus.ENDED for attempt in found if attempt.number == number
        )


class _Reading:
    """One open log and how far it was sent."""

    def __init__(self, path: str, offset: int, attempt: int, grep: str) -> None:
        self._log = GrowingLog(path)
        self._offset = offset  # where the unfinished line begins
        self._begun = b""  # of the unfinished line
        self._dropped = 0  # bytes of it that are not in `_begun` any more
        self._attempt = attempt
        self._grep = grep
        self._shown = ""
        self._shown_at = 0.0

    def close(self) -> None:
        self._log.close()

    def more(self) -> bytes | None:
        """The next lines as events, None when nothing more was written."""
        position = self._offset + self._dropped + len(self._begun)
        piece = self._log.read(position, _READ)
        if piece is None:
            return None
        data, length = piece
        return self._skip(position, position + length) if data is None else self._lines(data)

    def _lines(self, data: bytes) -> bytes:
        first, *others = data.split(b"\n")
        if not others:
            self._keep(first)
            return b""
        out = bytearray()
        for line in [self._begun + first, *others[:-1]]:
            self._offset += self._dropped + len(line) + 1
            self._dropped = 0
            out += self._line(line)
        self._begun = b""
        self._keep(others[-1])
        self._shown = ""
        return bytes(out)

    def _keep(self, data: bytes) -> None:
        """Add to the unfinished line, of which a limited part is enough."""
        begun = self._begun + data
        if len(begun) > _LONGEST_PART:
            folded = log_lines.folded(begun)[-_LONGEST_PART:]
            self._dropped += len(begun) - len(folded)
            begun = folded
        self._begun = begun

    def _line(self, line: bytes) -> bytes:
        text = log_lines.shown(line)
        if self._grep and self._grep not in text:
            return b""
        data = text.encode("utf-8", "replace")
        return b"id: %d:%d\ndata: %b\n\n" % (self._attempt, self._offset, data)

    def _skip(self, start: int, stop: int) -> bytes:
        out = self._line(self._begun) if self._begun else b""
        self._begun, self._dropped, self._offset = b"", 0, stop
        dropped = stop - start
        gap: dict[str, int | str] = {"from_byte": start, "to_byte": stop, "bytes": dropped}
        gap |= {"text": log_lines.gap_line(dropped)}
        return out + _event("gap", dumped(gap), f"{self._attempt}:{stop}")

    def partial(self) -> bytes:
        """The unfinished line, when it changed and was not shown a moment ago."""
        now = time.monotonic()
        if not self._begun or now - self._shown_at < _PARTIAL_EVERY_S:
            return b""
        text = log_lines.shown(self._begun)
        if text == self._shown or (self._grep and self._grep not in text):
            return b""
        self._shown, self._shown_at = text, now
        return _event("partial", text.encode("utf-8", "replace"))

    def rest(self) -> bytes:
        """The last line, when it has no newline."""
        if not self._begun:
            return b""
        self._offset += self._dropped + len(self._begun)
        out = self._line(self._begun)
        self._begun, self._dropped = b"", 0
        return out
