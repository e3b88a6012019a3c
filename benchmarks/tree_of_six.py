"""A job that is hard to end: a parent, three plain children, one deaf to SIGTERM, one detached.

The kernel tells who lives: each of the six holds the write end of a FIFO of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

ROLES = ("parent", "plain 1", "plain 2", "plain 3", "ignores SIGTERM", "detached")
SHELL = "/bin/sh"
# Each role opens its own FIFO (which closes the parent's) and writes its pid into it. The parent
# rests in a read that nobody answers, which needs no seventh process.
SCRIPT = """\
#!/bin/sh
{parent_trap}exec 8<>{folder}/rest 9>{folder}/0
for role in 1 2 3; do (exec 9>{folder}/$role; exec sh -c 'echo $$ >&9; exec sleep 3600') & done
(trap '' TERM; exec 9>{folder}/4; exec sh -c 'echo $$ >&9; exec sleep 3600') &
(exec 9>{folder}/5; exec setsid sh -c 'echo $$ >&9; exec sleep 3600' & exit)
echo $$ >&9
while :; do read nothing <&8; done
"""


class Tree:
    """One such job: `command` starts it, `ended` says when each of its processes was gone."""

    def __init__(self, parent_ignores: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tree-of-six-"))
        self.folder.chmod(0o755)
        self._fds = [self._fifo(number) for number in range(len(ROLES))]
        os.mkfifo(self.folder / "rest")
        (self.folder / "rest").chmod(0o666)
        trap = "trap : TERM\n" if parent_ignores else ""
        script = self.folder / "tree.sh"
        script.write_text(SCRIPT.format(folder=self.folder, parent_trap=trap))
        script.chmod(0o755)
        self.command = [SHELL, str(script)]
        self.pids: dict[str, int] = {}
        self.ended: dict[str, float] = {}  # role -> time.monotonic()

    def _fifo(self, number: int) -> int:
        path = self.folder / str(number)
        os.mkfifo(path)
        path.chmod(0o666)
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def __enter__(self) -> Tree:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def wait_until_it_runs(self, seconds: float = 90) -> None:
        """All six have told their pid."""
        limit = time.monotonic() + seconds
        for role, fd in zip(ROLES, self._fds, strict=True):
            text = b""
            while not text.endswith(b"\n"):
                if time.monotonic() > limit:
                    raise TimeoutError(f"no {role} after {seconds} s")
                with contextlib.suppress(BlockingIOError):
                    text += os.read(fd, 100)
                if not text.endswith(b"\n"):
                    time.sleep(0.005)
            self.pids[role] = int(text)

    def living(self) -> list[str]:
        watch = select.poll()
        for fd in self._fds:
            watch.register(fd, 0)  # an end is told without asking for it
        gone = {fd for fd, told in watch.poll(0) if told & select.POLLHUP}
        return [role for role, fd in zip(ROLES, self._fds, strict=True) if fd not in gone]

    def watched(self) -> threading.Thread:
        """A thread that notes in `ended` when each is gone, and is over when all are."""
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        return watcher

    def _watch(self) -> None:
        watch = select.poll()
        roles = dict(zip(self._fds, ROLES, strict=True))
        for fd in roles:
            watch.register(fd, 0)
        while roles:
            for fd, _ in watch.poll(200):
                if (role := roles.pop(fd, None)) is not None:
                    self.ended[role] = time.monotonic()
                    watch.unregister(fd)
            if self._fds == []:
                return

    def end_survivors(self) -> None:
        """By the pid that each wrote: while it holds its FIFO, the number is its own."""
        for role in self.living():
            if role not in self.pids:
                continue
            with contextlib.suppress(ProcessLookupError):
                pidfd = os.pidfd_open(self.pids[role])
                if role in self.living():
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)

    def close(self) -> None:
        if not self._fds:
            return
        self.end_survivors()
        fds, self._fds = self._fds, []
        for fd in fds:
            os.close(fd)
        shutil.rmtree(self.folder, ignore_errors=True)
