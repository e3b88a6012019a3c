"""Whether memory ran out in a container, from its control group: podman does not always tell.

The group is gone soon after the container; what counts is read when its first process ends.
Standard library only.
"""

from __future__ import annotations

import os
import select
import threading

from runyard.supervisor import process_table

_ROOT = "/sys/fs/cgroup"
_COUNTER = b"oom_kill"


class MemoryWatch:
    """Of the container whose first process this is; where that is not visible it sees nothing."""

    def __init__(self, container_id: str, pid: int, root: str = _ROOT) -> None:
        self._ran_out = False
        self._seen = threading.Event()
        self._path = counters(process_table.read(f"/proc/{pid}/cgroup") or b"", root)
        if self._path and container_id not in self._path:
            self._path = None  # the engine numbers processes otherwise than we see them
        try:
            self._process = os.pidfd_open(pid) if self._path else -1
        except OSError:
            self._process = -1
        if self._process < 0:
            self._seen.set()
            return
        threading.Thread(target=self._watch, name="memory", daemon=True).start()

    def ran_out(self) -> bool:
        """After its end."""
        self._seen.wait(1.0)
        return self._ran_out

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        poll.poll()
        text = process_table.read(self._path or "") or b""
        words = dict(line.split(maxsplit=1) for line in text.splitlines() if b" " in line)
        self._ran_out = int(words.get(_COUNTER, 0)) > 0
        os.close(self._process)
        self._seen.set()


def counters(groups: bytes, root: str = _ROOT) -> str | None:
    """The file that counts what the kernel killed for want of memory, from /proc/PID/cgroup."""
    lines = groups.decode(errors="replace").splitlines()
    paths = {names: path for _, names, path in (line.split(":", 2) for line in lines)}
    for names, path in paths.items():
        if "memory" in names.split(",") and path != "/":
            return f"{root}/memory{path}/memory.oom_control"
    path = paths.get("", "/")
    return f"{root}{path}/memory.events" if path != "/" else None
