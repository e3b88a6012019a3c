"""The folders that attempts have on this machine, the same for every executor.

What runs in them and who is told of it is the executor's own affair.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from runyard.executors.base import Stop
from runyard.supervisor import journal, protocol, stop_request


class AttemptFolders:
    def __init__(self, data_dir: Path) -> None:
        self._data_dir = str(data_dir)

    def of(self, attempt_id: str) -> str:
        return protocol.attempt_folder(self._data_dir, attempt_id)

    def ids(self) -> list[str]:
        """Attempts that have one, whichever executor they are with."""
        try:
            with os.scandir(f"{self._data_dir}/{protocol.ATTEMPTS}") as entries:
                return [
                    entry.name
                    for entry in entries
                    if protocol.valid_attempt_id(entry.name)
                    and entry.is_dir(follow_symlinks=False)
                ]
        except FileNotFoundError:
            return []

    def log_path(self, attempt_id: str, service: str = "", rank: int = 0) -> str:
        name = protocol.service_log(service) if service else protocol.rank_log(rank)
        return f"{self.of(attempt_id)}/{name}"

    def written(self, attempt_id: str) -> journal.Journal:
        """Its journal; an empty one where there is none."""
        return written_in(self.of(attempt_id))

    def refuse(self, attempt_id: str) -> bool:
        """Write its end before anybody handed it over; False where somebody did."""
        record = {
            "code": None,
            "signal": None,
            "cause": "never_started",
            "by": "reconciler",
            "proof": "absent",
            "started_at": None,
            "ended_at": time.time(),
        }
        return journal.refuse(self.of(attempt_id), record)

    def ask_to_stop(self, attempt_id: str, stop: Stop) -> None:
        folder = self.of(attempt_id)
        # The attempt may not have been handed over yet: its supervisor will find the request.
        os.makedirs(folder, mode=0o700, exist_ok=True)
        stop_request.write(
            folder,
            seq=stop.seq,
            cause=stop.cause,
            grace_s=stop.grace_s,
            requested_by=stop.requested_by,
            requested_at=stop.requested_at,
        )

    def touched_at(self, attempt_id: str) -> float:
        try:
            return os.stat(self.of(attempt_id)).st_mtime
        except OSError:
            return 0.0

    def remove(self, attempt_id: str) -> None:
        shutil.rmtree(self.of(attempt_id), ignore_errors=True)


def written_in(folder: str) -> journal.Journal:
    """The journal of a folder; an empty one where there is none."""
    try:
        return journal.read(folder)
    except FileNotFoundError:
        return journal.Journal()
