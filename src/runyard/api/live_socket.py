"""The live socket: pushes what changes to a browser tab or a terminal, in batches.

One message a topic and at most four rounds a second; ids by which a client that was away catches
up; a client that missed too much is told to load anew. Nothing is queued for a slow client.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from runyard.api.auth import Auth, subprotocol_of
from runyard.api.live_feed import MOST_MISSED, GapTooOld, LiveFeed
from runyard.api.live_log import LogTopic
from runyard.api.live_messages import Request, read_request
from runyard.api.live_states import LiveStates
from runyard.api.live_streams import MetricsTopic, StreamTopic, SystemTopic
from runyard.api.live_topics import (
    AlertsTopic,
    Asked,
    EventTopic,
    JobsTopic,
    JobTopic,
    read_topic,
)
from runyard.domain import errors
from runyard.domain.events import StoredEvent
from runyard.engine import server_log

ROUND_S = 0.25
_TOUCHED_EVERY_S = 1.0
_MOST_TOPICS = 200
_MOST_SOCKETS = 1000
_WATCHED_S = 5.0
_MARK_EVERY_S = 2.0
_CHECK_KEY_S = 15.0
_GOING_AWAY = 1001
_REFUSED = 1008


class LiveSockets:
    """The route; shares one feed between all sockets."""

    def __init__(self, feed: LiveFeed, auth: Auth) -> None:
        self._feed = feed
        self._auth = auth
        self._states = LiveStates(feed)

    async def serve(self, websocket: WebSocket) -> None:
        if self._feed.closing or self._feed.sockets >= _MOST_SOCKETS:
            await websocket.close(_GOING_AWAY)
            return
        # What happens from here on is told, also if it takes a while to hear which topics.
        cursor = await self._feed.last_id()
        await websocket.accept(subprotocol_of(websocket.scope))
        with self._feed.listening() as woken:
            made = _LiveSocket(websocket, self._feed, self._states, self._auth, woken, cursor)
            await made.run()


class _LiveSocket:
    def __init__(
        self,
        websocket: WebSocket,
        feed: LiveFeed,
        states: LiveStates,
        auth: Auth,
        woken: asyncio.Event,
        cursor: int,
    ) -> None:
        self._websocket = websocket
        self._feed = feed
        self._states = states
        self._auth = auth
        self._woken = woken
        self._event_topics: dict[str, EventTopic] = {}
        self._streams: dict[str, StreamTopic] = {}
        self._begun: list[tuple[list[str], int | None]] = []  # subscribed, not told of yet
        self._cursor = cursor  # all events up to this one are sent
        self._told_id = -1
        self._touches = feed.touches
        self._touched_due = 0.0
        self._mark_due = 0.0
        self._key_due = time.monotonic() + _CHECK_KEY_S

    async def run(self) -> None:
        work = {asyncio.create_task(self._receive()), asyncio.create_task(self._pump())}
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            for topic in self._streams.values():
                topic.close()
        for task in done:
            error = task.exception()
            if error is not None and not isinstance(error, WebSocketDisconnect):
                server_log.of().opt(exception=error).error("a live socket failed")
        with contextlib.suppress(Exception):
            await self._websocket.close(_GOING_AWAY if self._feed.closing else _REFUSED)

    # what the client asks

    async def _receive(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            try:
                request = read_request(message.get("text") or message.get("bytes") or b"")
            except errors.RunyardError as error:
                await self._complain(error)
                continue
            await self._obey(request)
            self._woken.set()

    async def _obey(self, request: Request) -> None:
        for text in request.unsubscribe:
            with contextlib.suppress(errors.InvalidRequest):
                self._drop(read_topic(text).name)
        begun = []
        for text in request.subscribe:
            try:
                begun.append(await self._begin(read_topic(text)))
            except errors.RunyardError as error:
                await self._complain(error, text)
        if begun:
            self._begun.append((begun, request.last_id))

    def _drop(self, name: str) -> None:
        self._event_topics.pop(name, None)
        stream = self._streams.pop(name, None)
        if stream is not None:
            stream.close()

    async def _begin(self, asked: Asked) -> str:
        self._drop(asked.name)
        if len(self._event_topics) + len(self._streams) >= _MOST_TOPICS:
            raise errors.InvalidRequest(f"A socket has at most {_MOST_TOPICS} topics.")
        if asked.kind == "jobs":
            self._event_topics["jobs"] = JobsTopic(self._states)
        elif asked.kind == "alerts":
            self._event_topics["alerts"] = AlertsTopic(self._states)
        elif asked.kind == "system":
            self._streams["system"] = SystemTopic(self._feed, self._states)
        else:
            await self._begin_of_job(asked)
        return asked.name

    async def _begin_of_job(self, asked: Asked) -> None:
        yard, name = self._feed.yard, asked.name
        job = (await run_in_threadpool(yard.job, asked.ref)).job
        if asked.kind == "job":
            self._event_topics[name] = JobTopic(self._states, name, job.ref, job.id)
        elif asked.kind == "log":
            key = self._auth.key_of(self._websocket.scope)
            self._streams[name] = LogTopic(self._feed, asked, job.id, key)
        else:
            remote = await run_in_threadpool(yard.node_url_of, asked.ref) is not None
            self._streams[name] = MetricsTopic(self._feed, asked, job.id, remote=remote)

    # what the client is told

    async def _pump(self) -> None:
        while not self._feed.closing and await self._may_go_on():
            began = time.monotonic()
            self._woken.clear()
            await self._tell_begun()
            await self._round()
            for stream in list(self._streams.values()):
                await self._stream(stream)
            self._mark_watched()
            await self._pause(began)

    async def _pause(self, began: float) -> None:
        polled = any(stream.polled for stream in self._streams.values())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROUND_S if polled else _TOUCHED_EVERY_S):
                await self._woken.wait()
        left = began + ROUND_S - time.monotonic()
        if left > 0:
            await asyncio.sleep(left)

    async def _tell_begun(self) -> None:
        while self._begun:
            names, last_id = self._begun.pop(0)
            topics = [self._event_topics[name] for name in names if name in self._event_topics]
            told = await self._catch_up(topics, last_id) if last_id is not None else set()
            for name in names:
                if name not in told:
                    await self._acknowledge(name)

    async def _acknowledge(self, name: str) -> None:
        """Whoever loads the present state after this message misses nothing."""
        stream = self._streams.get(name)
        following = stream.place() if isinstance(stream, (LogTopic, MetricsTopic)) else None
        if name in self._event_topics or following is not None:
            await self._send(name, [], following)

    async def _catch_up(self, topics: Sequence[EventTopic], last_id: int) -> set[str]:
        """Which of them were told something."""
        if last_id > self._cursor or self._cursor - last_id > MOST_MISSED:
            await self._reload(topics)
            return {topic.name for topic in topics}
        told: set[str] = set()
        while topics and last_id < self._cursor and not self._feed.closing:
            page = await self._feed.stored_after(last_id)
            missed = [one for one in page if one.id <= self._cursor]
            if not missed:
                break
            told |= await self._tell(topics, missed, {}, last_id, missed[-1].id)
            last_id = missed[-1].id
            await asyncio.sleep(ROUND_S if last_id < self._cursor else 0)
        return told

    async def _round(self) -> None:
        """What happened since the last one, to all topics of events."""
        topics = list(self._event_topics.values())
        if not topics:
            return
        try:
            page = await self._feed.events_after(self._cursor)
        except GapTooOld:
            self._cursor = await self._feed.last_id()
            await self._reload(topics)
            return
        touched: dict[int, int] = {}
        now = time.monotonic()
        if now >= self._touched_due:
            self._touched_due = now + _TOUCHED_EVERY_S
            count = self._feed.touches
            touched, self._touches = self._feed.touched_after(self._touches), count
        if not page and not touched:
            return
        reached = page[-1].id if page else self._cursor
        await self._tell(topics, page, touched, self._cursor, reached)
        self._cursor = reached

    async def _tell(
        self,
        topics: Sequence[EventTopic],
        page: Sequence[StoredEvent],
        touched: dict[int, int],
        before: int,
        reached: int,
    ) -> set[str]:
        """Only the last message has the new id: with it, all topics have these events."""
        messages = []
        for topic in topics:
            events = await topic.tell(page, touched)
            if events:
                messages.append((topic.name, events))
        for place, (name, events) in enumerate(messages, start=1):
            await self._send(name, events, None, reached if place == len(messages) else before)
        return {name for name, _ in messages}

    async def _stream(self, stream: StreamTopic) -> None:
        try:
            found = await stream.more()
        except GapTooOld:
            stream.skip()
            await self._reload([stream])
        except errors.RunyardError as error:
            self._drop(stream.name)
            await self._complain(error, stream.name)
        else:
            # The client may have turned away, or begun elsewhere, in the meantime.
            if found is not None and self._streams.get(stream.name) is stream:
                await self._send(stream.name, *found)

    async def _reload(self, topics: Sequence[EventTopic | StreamTopic]) -> None:
        for topic in topics:
            await self._put({"reload": topic.name, "id": self._cursor})

    async def _send(
        self,
        name: str,
        events: list[Any],
        following: str | None = None,
        event_id: int | None = None,
    ) -> None:
        message: dict[str, Any] = {"id": self._cursor if event_id is None else event_id}
        message |= {"topic": name, "events": events}
        if following is not None:
            message["next"] = following
        self._told_id = message["id"]
        await self._put(message)

    async def _complain(self, error: errors.RunyardError, topic: str | None = None) -> None:
        told = {"code": error.code, "message": error.message, "params": error.params}
        await self._put({"error": told} | ({"topic": topic[:200]} if topic else {}))

    async def _put(self, message: dict[str, Any]) -> None:
        # Waits here for as long as the client does not read.
        await self._websocket.send_text(orjson.dumps(message, default=str).decode())

    # care

    def _mark_watched(self) -> None:
        now = time.monotonic()
        if now < self._mark_due:
            return
        self._mark_due = now + _MARK_EVERY_S
        watchers = self._feed.yard.board.watchers
        marks = {topic.watched for topic in self._event_topics.values()}
        marks |= {stream.watched for stream in self._streams.values()}
        for mark in marks - {None}:
            watchers.watch(str(mark), _WATCHED_S)

    async def _may_go_on(self) -> bool:
        """False when the key was revoked. And now and then how far events were read."""
        now = time.monotonic()
        if now < self._key_due:
            return True
        self._key_due = now + _CHECK_KEY_S
        try:
            await self._auth.identify(self._websocket.scope)
        except errors.RunyardError:
            return False
        if self._event_topics and self._cursor > self._told_id:
            await self._send(next(iter(self._event_topics)), [])
        return True
