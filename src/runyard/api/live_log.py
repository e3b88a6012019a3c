"""The topic of the live socket that sends a log as it is written, byte by byte, over attempts."""

from __future__ import annotations

import time
from typing import Any

from starlette.concurrency import run_in_threadpool

from runyard.api import log_proxy
from runyard.api.live_feed import LiveFeed
from runyard.api.live_topics import Asked
from runyard.domain import errors, states
from runyard.engine.watch.watchers import of_job
from runyard.logs.growing_log import GrowingLog

_PER_BATCH = 256 * 1024
_LOOK_AGAIN_S = 5.0
_ASK_OTHER_S = 1.0
_LONGEST_LETTER = 4  # bytes of UTF-8


class LogTopic:
    """Text with its place in bytes; gaps; where another attempt begins; and the job's end."""

    polled = True

    def __init__(self, feed: LiveFeed, asked: Asked, job_id: int, key: str) -> None:
        self.name = asked.name
        self.watched: str | None = of_job(job_id)
        self._feed = feed
        self._ref = asked.ref
        self.rank = asked.rank
        self._job_id = job_id
        self._key = key  # to ask another server with, where the log is there
        self._number = asked.attempt
        self._offset = asked.offset
        self._source: _LocalLog | _OtherLog | None = None
        self._over = False  # the attempt has ended: what is not there now never comes
        self._told_end: tuple[int | None, str] | None = None
        self._looked_at = float("-inf")
        self._heard = -1

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def skip(self) -> None:
        pass

    async def more(self) -> tuple[list[Any], str | None] | None:
        found: list[Any] = []
        if self._source is None:
            await self._open()
        if self._source is not None and (piece := await self._read()):
            found.append(piece)
        elif self._is_time_to_look():
            found += await self._look()
        return (found, self.place()) if found else None

    def place(self) -> str:
        """The topic that goes on here."""
        number = f":{self._number}" if self._number else ""
        return f"{self.name}{number}:{self._offset}"

    async def _open(self) -> None:
        job = await run_in_threadpool(self._feed.yard.live.job, self._job_id)
        if job is None:
            raise errors.JobNotFound(job=self._ref)
        if not job.attempt_number:
            return
        number = min(self._number or job.attempt_number, job.attempt_number)
        yard = self._feed.yard
        url = await run_in_threadpool(yard.node_url_of, self._ref, number)
        path, self._over = await run_in_threadpool(yard.log_path, self._ref, number, self.rank)
        self._number = number
        self._source = _LocalLog(path) if url is None else _OtherLog(url, self, self._key)

    async def _read(self) -> dict[str, Any] | None:
        assert self._source is not None
        start = self._offset
        found = await self._source.read(start)
        if found is None:
            return None
        data, length = found
        if data is None:
            self._offset += length
            place = {"attempt": self._number, "from_byte": start, "to_byte": self._offset}
            return {"type": "gap", **place, "bytes": length}
        if not self._over and len(data) == length:
            data = _whole_letters(data)
            length = len(data)
        if not data:
            return None
        self._offset += length
        place = {"attempt": self._number, "offset": start, "next_offset": self._offset}
        return {"type": "text", **place, "text": data.decode("utf-8", "replace")}

    def _is_time_to_look(self) -> bool:
        heard, now = self._feed.newest_heard(), time.monotonic()
        if heard == self._heard and now - self._looked_at < _LOOK_AGAIN_S:
            return False
        self._heard, self._looked_at = heard, now
        return True

    async def _look(self) -> list[Any]:
        """Whether the attempt has ended, and what came after it."""
        job = await run_in_threadpool(self._feed.yard.live.job, self._job_id)
        if job is None or self._number is None:
            return []
        if not self._over:
            _, over = await run_in_threadpool(self._feed.yard.log_path, self._ref, self._number)
            self._over = over
            self._looked_at = float("-inf")  # its last bytes first, then look again
            self._heard = -1 if over else self._heard
            return []
        if job.attempt_number > self._number:
            self.close()
            self._source, self._over, self._offset = None, False, 0
            self._number += 1
            return [{"type": "attempt", "number": self._number}]
        end = (self._number, job.status.value)
        if job.status in states.ENDED and self._told_end != end:
            self._told_end = end
            return [{"type": "end", "status": job.status.value, "attempt": self._number}]
        return []

    @property
    def ref(self) -> str:
        return self._ref

    @property
    def number(self) -> int | None:
        return self._number


class _LocalLog:
    """A log on this machine. Reading what was just written takes no time."""

    def __init__(self, path: str) -> None:
        self._log = GrowingLog(path)

    def close(self) -> None:
        self._log.close()

    async def read(self, offset: int) -> tuple[bytes | None, int] | None:
        return self._log.read(offset, _PER_BATCH)


class _OtherLog:
    """A log that another server has."""

    def __init__(self, url: str, topic: LogTopic, key: str) -> None:
        self._url = url
        self._topic = topic
        self._key = key
        self._asked_at = float("-inf")
        self._size = 0  # as far as was told

    def close(self) -> None:
        pass

    async def read(self, offset: int) -> tuple[bytes | None, int] | None:
        """Of bytes that were dropped, the other server tells in a line in their place."""
        now = time.monotonic()
        if now - self._asked_at < _ASK_OTHER_S:
            return None
        if self._size <= offset:
            _, self._size = await self._ask(offset, 0)
        length = min(self._size - offset, _PER_BATCH)
        if length <= 0:
            self._asked_at = now
            return None
        data, self._size = await self._ask(offset, length)
        if not data:
            self._asked_at = now
        return (data, length) if data else None

    async def _ask(self, offset: int, length: int) -> tuple[bytes, int]:
        topic = self._topic
        try:
            return await log_proxy.fetch_raw(
                self._url, topic.ref, topic.number, offset, length, self._key, topic.rank
            )
        except errors.Unavailable:  # it may come back
            return b"", self._size


def _whole_letters(data: bytes) -> bytes:
    """Without the beginning of a letter whose rest was not written yet."""
    for back in range(1, min(_LONGEST_LETTER, len(data) + 1)):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:  # the first byte of a letter
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < length else data
    return data
