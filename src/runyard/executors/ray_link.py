"""The server's end of the ray-bridge: a child process that is started again whenever it ends.

Ray ends the process it lives in when a cluster is lost, so that this is an ordinary event.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Line = dict[str, Any]

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
_LEAVE_S = 3.0
_SETTLED_S = 30.0  # one that lived so long is started again at once
_BRIDGE = Path(__file__).resolve().parent.parent / "ray_bridge" / "bridge_main.py"


class BridgeAway(Exception):
    """There is no bridge now, or it does not answer."""


@dataclass(frozen=True, slots=True)
class Begin:
    """How the next bridge is to be started."""

    python: str
    arguments: Sequence[str]
    environment: Mapping[str, str]


class RayLink:
    """`begin` is asked before every start and may raise OSError; `hear` gets every line the bridge
    tells by itself, and `{"told": "gone"}` when it has ended. Both from the link's own thread."""

    def __init__(
        self, log: Path, begin: Callable[[], Begin], hear: Callable[[Line], None]
    ) -> None:
        self._log = log
        self._begin = begin
        self._hear = hear
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[threading.Event, list[Line]]] = {}
        self._thread = threading.Thread(target=self._run, name="ray bridge", daemon=True)

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """The bridge ends when its input does."""
        self._closing.set()
        with self._lock:
            process = self._process
        if process is not None:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(_LEAVE_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._thread.is_alive():
            self._thread.join(_LEAVE_S)

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    def tell(self, line: Line) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._process is None or self._process.stdin is None:
                raise BridgeAway("there is no bridge now")
            try:
                self._process.stdin.write(data)
                self._process.stdin.flush()
            except (OSError, ValueError) as error:
                raise BridgeAway(str(error)) from error

    def ask(self, line: Line, seconds: float) -> Line:
        number = next(self._numbers)
        answered, answers = threading.Event(), list[Line]()
        self._waiting[number] = (answered, answers)
        try:
            self.tell({**line, "id": number})
            if not answered.wait(seconds) or not answers:
                raise BridgeAway("the bridge does not answer")
        finally:
            self._waiting.pop(number, None)
        if "error" in answers[0]:
            raise BridgeAway(str(answers[0]["error"]))
        return answers[0]

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                self._serve()
            except OSError as error:
                self._hear({"told": "gone", "why": str(error)})
            if time.monotonic() - began > _SETTLED_S:
                pause = FIRST_PAUSE_S
            self._closing.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _serve(self) -> None:
        """The life of one bridge."""
        process = self._spawn(self._begin())
        with self._lock:
            self._process = process
        assert process.stdout is not None
        try:
            for data in process.stdout:
                self._take(data)
        finally:
            with self._lock:
                self._process = None
            process.stdout.close()
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
            code = _ended(process)
            for answered, _ in list(self._waiting.values()):
                answered.set()
        self._hear({"told": "gone", "code": code})

    def _spawn(self, begin: Begin) -> subprocess.Popen[bytes]:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return subprocess.Popen(
                [begin.python, "-I", "-X", "utf8", str(_BRIDGE), *begin.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=descriptor,
                env=dict(begin.environment),
                cwd="/",
                start_new_session=True,  # a Ctrl-C in the server's terminal is the server's
            )
        finally:
            os.close(descriptor)

    def _take(self, data: bytes) -> None:
        try:
            line = json.loads(data)
        except ValueError:
            return
        if not isinstance(line, dict):
            return
        if "answer" in line:
            waiting = self._waiting.get(line["answer"])
            if waiting is not None:
                waiting[1].append(line)
                waiting[0].set()
        else:
            self._hear(line)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """It has closed its output: it ends, or is made to."""
    try:
        return process.wait(_LEAVE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
