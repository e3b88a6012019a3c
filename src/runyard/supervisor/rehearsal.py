"""A few attempts of nothing, run by the keeper itself before it forks its first supervisor.

The interpreter adapts code as it runs and writes that into memory. Done before the fork, all
supervisors share it: each is smaller and its first attempt as quick as its tenth.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

from runyard.supervisor import journal, protocol
from runyard.supervisor.attempt import Attempt
from runyard.supervisor.host import SIGNALS, Host

_ROUNDS = 10
_ATTEMPT_ID = "rehearsal"
_FOLDER = f"{protocol.KEEPER}/{_ATTEMPT_ID}"
_SPEC = {"tag": 1 << 60, "argv": ["/bin/true"], "env": {}, "cwd": "/"}


class _NoNews:
    """Nobody is told."""

    unsent = ()

    def send(self, kind: str, attempt_id: str, **fields: Any) -> None:
        pass

    def flush(self, patience_s: float = 0.0) -> None:
        pass


def rehearse() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    host = Host(os.getpid())
    host.news.close()
    host.news = _NoNews()  # type: ignore[assignment]
    try:
        for _ in range(_ROUNDS):
            _clear()
            journal.create(_FOLDER, _SPEC)
            attempt = Attempt(host, _ATTEMPT_ID)
            attempt.folder = _FOLDER
            attempt.run()
        _clear()
    except OSError:
        pass  # no room on the disk: the keeper is only a little slower
    while signal.sigtimedwait(SIGNALS, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _clear() -> None:
    for name in (protocol.JOURNAL, protocol.LOG):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{_FOLDER}/{name}")
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(_FOLDER)
