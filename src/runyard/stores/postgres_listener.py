"""The thread that hears, on a connection of its own, what the servers of one database tell."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from loguru import logger

from runyard.domain.events import StoredEvent
from runyard.stores.postgres_connection import Connection, PostgresDriver, connect
from runyard.stores.prepared import PreparedStatements
from runyard.stores.session import ShapeCache
from runyard.stores.sql import SqlReader

EVENTS_CHANNEL = "runyard_events"
WAKE_CHANNEL = "runyard_wake"
_BATCH = 1000
_LOOK_AGAIN_S = 15.0  # without any news: is the connection alive, is the clock still right
_RECONNECT_S = (0.1, 0.5, 1.0, 2.0, 5.0)


class DatabaseClock:
    """The clock of the database, carried on by ours between looks at it."""

    def __init__(self) -> None:
        self._at = (time.time(), time.monotonic())

    def set(self, connection: Connection) -> None:
        before = time.monotonic()
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        assert row is not None
        self._at = (row[0], (before + time.monotonic()) / 2)

    def now(self) -> float:
        told, then = self._at
        return told + time.monotonic() - then


class Listener:
    """Delivers every event once and in order, also those told while the database was away."""

    def __init__(
        self, url: str, own_name: str, statements: PreparedStatements, clock: DatabaseClock
    ) -> None:
        self._url = url
        self._own_name = own_name
        self._statements = statements
        self._clock = clock
        self._closing = threading.Event()
        self.hearers: list[Callable[[Sequence[StoredEvent]], None]] = []
        self.wakers: list[Callable[[str], None]] = []
        self._connection = self._connect()
        self._last = self._reader().last_event_id()
        self._thread = threading.Thread(target=self._work, name="store-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        # Ends the wait for news; the thread closes the connection itself.
        with contextlib.suppress(psycopg.Error), connect(self._url) as connection:
            connection.execute("SELECT pg_notify(%s, '')", (WAKE_CHANNEL,))
        self._thread.join(timeout=_LOOK_AGAIN_S)

    def _connect(self) -> Connection:
        connection = connect(self._url, "runyard-listener")
        connection.execute(f"LISTEN {EVENTS_CHANNEL}")
        connection.execute(f"LISTEN {WAKE_CHANNEL}")
        self._clock.set(connection)
        return connection

    def _reader(self) -> SqlReader:
        return SqlReader(PostgresDriver(self._connection), self._statements, ShapeCache())

    def _work(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                if self._connection.closed:
                    self._connection = self._connect()
                self._deliver()
                failures = 0
                self._listen()
            except psycopg.Error as error:
                self._connection.close()
                logger.warning("the database does not answer: {}", str(error).split("\n")[0])
                self._closing.wait(_RECONNECT_S[min(failures, len(_RECONNECT_S) - 1)])
                failures += 1
        self._connection.close()

    def _listen(self) -> None:
        """Until something goes wrong or the store is closed."""
        while not self._closing.is_set():
            # All of them: several may arrive in one packet.
            notices = list(self._connection.notifies(timeout=_LOOK_AGAIN_S, stop_after=1))
            for notice in notices:
                if notice.channel == WAKE_CHANNEL:
                    self._wake(notice.payload)
            if not notices:
                self._clock.set(self._connection)
            if not notices or any(notice.channel == EVENTS_CHANNEL for notice in notices):
                self._deliver()

    def _deliver(self) -> None:
        while True:
            found = self._reader().events(after=self._last, limit=_BATCH)
            if found:
                self._last = found[-1].id
                for hear in self.hearers:
                    _guarded(hear, found)
            if len(found) < _BATCH:
                return

    def _wake(self, payload: str) -> None:
        sender, _, topic = payload.partition(" ")
        if topic and sender != self._own_name:
            for hear in self.wakers:
                _guarded(hear, topic)


def _guarded(hear: Callable[[Any], None], told: Any) -> None:
    try:
        hear(told)
    except Exception:
        logger.exception("a subscriber of the store failed")
