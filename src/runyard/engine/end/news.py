"""Executors' news into the store, in batches, without delay for ends."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runyard.domain.preparation import is_preparation_id
from runyard.engine import server_log
from runyard.engine.end import recorded_ends
from runyard.engine.end.ending import Ender
from runyard.engine.end.gpu_return import GpuReturn
from runyard.engine.launch.launching import Launcher
from runyard.executors.base import End, News, NewsKind

# A very short job's start is told by its end, which saves a transaction.
_START_DELAY_S = 0.02


class NewsDesk:
    def __init__(
        self,
        ender: Ender,
        launcher: Launcher,
        gpu_return: GpuReturn,
        look_again: Callable[[], None],
        stuck: Callable[[str, Sequence[Mapping[str, Any]]], None],
        prepared: Callable[[Sequence[tuple[str, End]]], None],
        service: Callable[[News], None],
        stopping: Callable[[News], None],
    ) -> None:
        self._ender = ender
        self._launcher = launcher
        self._gpu_return = gpu_return
        self._look_again = look_again
        self._stuck = stuck
        self._prepared = prepared
        self._service = service
        self._stopping = stopping
        self._news: queue.SimpleQueue[News | None] = queue.SimpleQueue()
        self._started: dict[str, tuple[float, float]] = {}  # attempt -> (due, started at)
        self._thread = threading.Thread(target=self._run, name="news-desk", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._news.put(None)
        if self._thread.is_alive():  # a yard that could not be opened is closed as well
            self._thread.join(5)

    def hear(self, news: News) -> None:
        self._news.put(news)

    def later_ended(self, ends: list[tuple[str, End]]) -> None:
        """As `ended`, but by the desk's own thread: for callers that may be inside a write."""
        for attempt_id, end in ends:
            self.hear(News(attempt_id, NewsKind.ENDED, end.ended_at, end))

    def ended(self, ends: list[tuple[str, End]]) -> None:
        """Record these ends and start what fits then; an end whose GPUs are not back waits."""
        ready = self._gpu_return.proven(ends, self.ended)
        if not ready:
            return
        placed, recorded = self._ender.ended(ready)
        for started in placed:
            self._launcher.launch(started)
        for done in recorded:
            recorded_ends.tell(done)

    def _run(self) -> None:
        going = True
        while going:
            try:
                going = self._take()
            except Exception as error:
                # What was not recorded is still in the journals.
                server_log.of().opt(exception=error).error("news could not be recorded")
                self._look_again()
                time.sleep(0.05)

    def _take(self) -> bool:
        """One batch; False when told to stop."""
        ends: list[tuple[str, End]] = []
        finishing: list[str] = []
        stopping: list[News] = []
        for news in self._batch():
            if news is None:
                return False
            if news.kind is NewsKind.STARTED:
                if is_preparation_id(news.attempt_id):
                    continue  # its end tells
                due = time.monotonic() + _START_DELAY_S
                self._started[news.attempt_id] = (due, news.at)
            elif news.kind is NewsKind.ENDED and news.end is not None:
                self._started.pop(news.attempt_id, None)
                ends.append((news.attempt_id, news.end))
            elif news.kind is NewsKind.FINISHING:
                finishing.append(news.attempt_id)
            elif news.kind is NewsKind.STOPPING:
                stopping.append(news)
            elif news.kind is NewsKind.SERVICE:
                self._service(news)
            elif news.kind is NewsKind.STUCK:
                self._stuck(news.attempt_id, news.stuck)
            elif news.kind is NewsKind.GPUS_HELD:
                self._gpu_return.held_on_nodes(news)
            else:
                self._look_again()
        of_preparations = [told for told in ends if is_preparation_id(told[0])]
        if of_preparations:
            self._prepared(of_preparations)
            ends = [told for told in ends if not is_preparation_id(told[0])]
        if ends:
            self.ended(ends)
        now = time.monotonic()
        for attempt_id in [name for name, (due, _) in self._started.items() if due <= now]:
            self._ender.started(attempt_id, self._started.pop(attempt_id)[1])
        for begun in stopping:
            self._begun(begun.attempt_id)
            self._stopping(begun)
        for attempt_id in finishing:
            self._begun(attempt_id)
            self._ender.finishing(attempt_id)
        return True

    def _begun(self, attempt_id: str) -> None:
        """What is told of it next needs its start."""
        if attempt_id in self._started:
            self._ender.started(attempt_id, self._started.pop(attempt_id)[1])

    def _batch(self) -> list[News | None]:
        """Wait for the first, then take all there are."""
        patience = None
        if self._started:
            first = min(due for due, _ in self._started.values())
            patience = max(0.0, first - time.monotonic())
        try:
            batch = [self._news.get(timeout=patience)]
        except queue.Empty:
            return []
        while True:
            try:
                batch.append(self._news.get_nowait())
            except queue.Empty:
                return batch
