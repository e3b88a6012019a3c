"""What the GPUs of a slice hold: before it starts, while it runs, and after its end, when they go
to somebody else only if its memory is back.

Read by nvidia-smi, if its node has one; nobody who starts or stops a slice waits for that.
This module travels to the nodes by value: it uses the standard library, nothing of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

_PROGRAM = "nvidia-smi"
_READ_S = 20.0
_POLL_S = 0.2
_TOLERANCE_MB = 256  # a driver keeps a little for itself, and it varies
# What is read later than this after the start may be the job's own.
_BEFORE_S = 1.0
# Where nobody knows what was used before: so little is as good as nothing, and so long is waited.
_LOW_MB = 1024
_UNKNOWN_PATIENCE_S = 30.0
_NOTE_EVERY_S = 30.0

Reading = dict[str, Any]  # index, uuid, used_mb


class SliceGpus:
    """What is known is kept in a file, for whoever takes the place of this actor."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._program = shutil.which(_PROGRAM)
        self._lock = threading.Lock()
        self._before: list[Reading] | None = None
        self._started_at: float | None = None
        self._known = self._load()
        self._note_due = 0.0
        self._noting = False
        self._asked_at: float | None = None

    @property
    def can_tell(self) -> bool:
        return self._program is not None

    # before and while it runs

    def look_before(self) -> None:
        """As soon as it is known that some of them will be the slice's."""
        if self._program is not None:
            threading.Thread(target=self._look_before, daemon=True).start()

    def started(self, visible: str, *, shared: bool) -> None:
        """These are its own, as CUDA_VISIBLE_DEVICES names them, and it starts now."""
        if self._program is None:
            return
        with self._lock:
            self._started_at = time.monotonic()
            self._note_due = self._started_at + _NOTE_EVERY_S / 4
            ids = [one for one in visible.split(",") if one]
            self._known = {"ids": ids, "shared": shared, "before": {}, "used": {}}
            self._take_before()

    def note(self) -> None:
        """What it uses now, for its receipt; it may be about to end."""
        with self._lock:
            if self._program is None or not self._known.get("ids") or self._noting:
                return
            self._noting = True
        threading.Thread(target=self._note, daemon=True).start()

    def note_now_and_then(self) -> None:
        if self._started_at is not None and time.monotonic() >= self._note_due:
            self._note_due = time.monotonic() + _NOTE_EVERY_S
            self.note()

    # after its end

    def given_back(self, seconds: float) -> dict[str, Any]:
        """Of its GPUs, once nothing of it lives: `held` are those whose memory is not back after
        so many seconds. None of either where they could not be read, though they could be before
        if `unread`."""
        self._asked_at = self._asked_at or time.monotonic()
        deadline = time.monotonic() + seconds
        while True:
            own = self._own(self._read())
            busy = self._busy() if own else frozenset()
            held = [one for one in own if self._is_held(one, busy)]
            unread = not own and bool(self._known.get("before"))
            if not (held or unread) or time.monotonic() >= deadline:
                used: Mapping[str, int] = self._known.get("used", {})
                gpus = [_returned(one, used.get(one["uuid"])) for one in own]
                return {"gpus": gpus, "held": held, "unread": unread}
            time.sleep(_POLL_S)

    def _is_held(self, one: Reading, busy: frozenset[str]) -> bool:
        uuid, used = one["uuid"], int(one["used_mb"])
        self._known["used"][uuid] = max(used, self._known["used"].get(uuid, 0))
        if self._known["shared"] or uuid in busy:
            # Memory of others cannot be told from its own: that nothing of it lives is the proof.
            return False
        before = self._known["before"].get(uuid)
        if before is None:
            assert self._asked_at is not None
            waited = time.monotonic() - self._asked_at
            return used > _LOW_MB and waited < _UNKNOWN_PATIENCE_S
        return used > int(before) + _TOLERANCE_MB

    # inside

    def _look_before(self) -> None:
        found = self._read()
        with self._lock:
            started_at = self._started_at
            if started_at is None or time.monotonic() - started_at < _BEFORE_S:
                self._before = found
                self._take_before()

    def _take_before(self) -> None:
        if self._known.get("ids") and self._before:
            own = self._own(self._before)
            self._known["before"] = {one["uuid"]: one["used_mb"] for one in own}
        if self._known.get("ids"):
            self._keep()

    def _note(self) -> None:
        found = self._own(self._read())
        with self._lock:
            self._noting = False
            if self._asked_at is None and found:
                self._known["used"] = {one["uuid"]: one["used_mb"] for one in found}
                self._keep()

    def _own(self, found: Sequence[Reading]) -> list[Reading]:
        ids = self._known.get("ids", ())
        return [one for one in found if str(one["index"]) in ids or one["uuid"] in ids]

    def _busy(self) -> frozenset[str]:
        """Those that a living process uses."""
        rows = self._ask("--query-compute-apps=gpu_uuid,pid")
        return frozenset(uuid for uuid, pid in rows if os.path.exists(f"/proc/{pid}"))

    def _read(self) -> list[Reading]:
        found = []
        for index, uuid, used in self._ask("--query-gpu=index,uuid,memory.used"):
            with contextlib.suppress(ValueError):  # of some it does not tell
                found.append({"index": int(index), "uuid": uuid, "used_mb": int(float(used))})
        return found

    def _ask(self, question: str) -> list[list[str]]:
        """The rows of its answer; none where it has none."""
        if self._program is None:
            return []
        try:
            done = subprocess.run(
                [self._program, question, "--format=csv,noheader,nounits"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_READ_S,
                check=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return []
        wanted = question.count(",") + 1
        rows = [[word.strip() for word in row.split(",")] for row in done.stdout.splitlines()]
        return [row for row in rows if len(row) == wanted]

    def _load(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError), open(self._path) as file:
            found: dict[str, Any] = json.load(file)
            return found
        return {}

    def _keep(self) -> None:
        draft = f"{self._path}.tmp"
        with contextlib.suppress(OSError):  # it is for another actor, should this one die
            with open(draft, "w") as file:
                json.dump(self._known, file)
            os.rename(draft, self._path)


def _returned(one: Reading, used_mb: int | None) -> dict[str, Any]:
    return {
        "index": one["index"],
        "uuid": one["uuid"],
        "memory_before_mb": used_mb,
        "memory_after_mb": one["used_mb"],
    }
