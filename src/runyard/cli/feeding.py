"""Keeps what a screen shows up to date beside it: by the live socket, else by asking again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from runyard.sdk import errors
from runyard.sdk.client import Client

_ASK_EVERY_S = 2.0


class Feeding:
    """For `with`. `hear` gets messages of the live socket; where there is none, `ask` is called
    every two seconds instead. Both are called by one other thread."""

    def __init__(
        self,
        client: Client,
        topics: Sequence[str],
        hear: Callable[[dict[str, Any]], None],
        ask: Callable[[], None],
    ) -> None:
        self._watch = client.watch(*topics)
        self._hear = hear
        self._ask = ask
        self._over = threading.Event()
        self._polls = False
        self._error: BaseException | None = None
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="runyard-feeding", daemon=True)

    def __enter__(self) -> Feeding:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._thread.join(2)

    @property
    def is_live(self) -> bool:
        return self._polls or self._watch.is_live

    @property
    def over(self) -> bool:
        """Nothing more comes; raises what ended it, if that was an error."""
        if self._error is not None:
            raise self._error
        return self._over.is_set()

    def stop(self) -> None:
        self._over.set()
        self._news.set()
        self._watch.close()

    def wait(self, seconds: float) -> None:
        """For news."""
        self._news.wait(seconds)
        self._news.clear()

    def _run(self) -> None:
        try:
            try:
                self._listen()
            except (errors.ServerUnreachable, errors.Unauthenticated):
                raise
            except errors.RunyardError:  # an older server, or a proxy that lets no socket through
                self._polls = True
                self._poll()
        except Exception as error:
            if not self._over.is_set():
                self._error = error
        finally:
            self._over.set()
            self._news.set()

    def _listen(self) -> None:
        for message in self._watch:
            self._hear(message)
            self._news.set()
            if self._over.is_set():
                return

    def _poll(self) -> None:
        while not self._over.is_set():
            self._ask()
            self._news.set()
            self._over.wait(_ASK_EVERY_S)
