"""The supervisor process: takes one attempt after the other from the keeper.

Between attempts it is provably empty: the last one ended with ECHILD and its exit record.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import NoReturn

from runyard.supervisor import kernel, protocol
from runyard.supervisor.attempt import Attempt
from runyard.supervisor.host import Host

IDLE = b"idle"
_NEWS_PATIENCE_S = 0.5
_LAST_NEWS_PATIENCE_S = 30.0


def serve(keeper: socket.socket, keeper_pid: int) -> NoReturn:
    """Life of a supervisor, in a process just forked from the keeper with the signals of
    `host.SIGNALS` blocked."""
    os.setsid()
    kernel.become_subreaper()
    kernel.name_process("runyard-superv")
    host = Host(keeper_pid)
    while True:
        host.prepare_child()
        message = _next_message(keeper, host)
        if not message:
            break
        Attempt(host, message.decode()).run()
        host.news.flush(_NEWS_PATIENCE_S)
        try:
            keeper.send(IDLE)
        except OSError:
            break  # the keeper is gone
    # Dismissed: nobody would tell what a server that is slow to read has not heard yet.
    host.news.flush(_LAST_NEWS_PATIENCE_S)
    os._exit(0)


def _next_message(keeper: socket.socket, host: Host) -> bytes:
    """Idle: SIGTERM simply ends the process; unsent news is tried again now and then."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    try:
        while True:
            keeper.settimeout(protocol.HEARTBEAT_S if host.news.unsent else None)
            try:
                return keeper.recv(4096)
            except TimeoutError:
                host.news.flush()
            except ConnectionError:
                return b""
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
