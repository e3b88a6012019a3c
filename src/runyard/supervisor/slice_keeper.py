"""A keeper for one attempt on a node of a cluster, that lives as long as what started it.

Whoever started it holds the other end of a pipe: lines that come through it are requests to stop,
its end means that nobody watches any more, and everything is ended.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time

from runyard.supervisor import keeper, kernel, protocol, stop_request

LIFELINE_LOST = "lifeline"  # the cause of the stop when the other end is gone
LIFELINE_GRACE_S = 2.0
_LIFELINE = 0  # standard input
_NUDGE_PATIENCE_S = 5.0
_NUDGE_PAUSE_S = 0.02


class SliceKeeper(keeper.Keeper):
    def __init__(self, listener: socket.socket, attempt_id: str, heard: bytes) -> None:
        super().__init__(listener, "slice", 0.0)
        self._attempt_id = attempt_id
        self._heard = heard  # lines of the lifeline, as far as they came
        self._poll.register(_LIFELINE, select.EPOLLIN)

    def keep(self) -> None:
        """From the start of the attempt until it has its exit record."""
        self._run(self._attempt_id)
        self._leaving = True  # once nothing is left there is nothing to stay for
        self._obey_lines()
        self.run()

    def _serve(self, fd: int) -> None:
        if fd == _LIFELINE:
            self._hear_lifeline()
        else:
            super()._serve(fd)

    def _hear_lifeline(self) -> None:
        data = os.read(_LIFELINE, 65536)
        if data:
            self._heard += data
            self._obey_lines()
            return
        self._poll.unregister(_LIFELINE)
        tell_lost(self._folder)
        self._nudge()

    def _obey_lines(self) -> None:
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            self._stop(json.loads(line))

    def _stop(self, request: stop_request.Request) -> None:
        write_request(self._folder, request)
        self._nudge()

    def _nudge(self) -> None:
        """A supervisor that is just starting is told again until it can be reached."""
        deadline = time.monotonic() + _NUDGE_PATIENCE_S
        while not stop_request.nudge(self._folder) and self.pool.busy():
            if time.monotonic() >= deadline:
                return
            time.sleep(_NUDGE_PAUSE_S)

    @property
    def _folder(self) -> str:
        return f"{protocol.ATTEMPTS}/{self._attempt_id}"


def write_request(folder: str, request: stop_request.Request) -> None:
    stop_request.write(
        folder,
        seq=int(request["seq"]),
        cause=str(request["cause"]),
        grace_s=float(request["grace_s"]),
        requested_by=str(request["requested_by"]),
        requested_at=float(request["requested_at"]),
    )


def tell_lost(folder: str) -> None:
    """Ask for the end of an attempt that nobody watches over any more. Who asked for it before,
    and why, stays known: only the grace gets shorter."""
    asked = stop_request.read(folder)
    if asked is not None and asked["grace_s"] <= LIFELINE_GRACE_S:
        return
    if asked is None:
        lost = {"seq": 0, "cause": LIFELINE_LOST, "requested_by": "keeper"}
        asked = {**lost, "requested_at": time.time()}
    write_request(folder, {**asked, "seq": asked["seq"] + 1, "grace_s": LIFELINE_GRACE_S})


def keep(attempt_id: str, heard: bytes) -> None:
    """Be the keeper, in a process of its own session whose working directory is the slice's."""
    kernel.become_subreaper()
    kernel.name_process("runyard-keeper")
    os.makedirs(protocol.KEEPER, 0o700, exist_ok=True)
    listener = keeper.listen(f"{protocol.KEEPER}/slice.sock")
    SliceKeeper(listener, attempt_id, heard).keep()
