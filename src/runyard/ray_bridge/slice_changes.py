"""Waiting until something is written in a folder, without looking all the time.

This module travels to the nodes by value: it uses the standard library, nothing of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import struct
import time

LOOK_S = 0.02  # between two looks at what is written all the time
_MODIFIED, _MOVED_HERE, _CREATED = 0x2, 0x80, 0x100
_EVENT = "iIII"
_EVENT_BYTES = struct.calcsize(_EVENT)
_ROOM = 1 << 16


class Changes:
    """In one folder. `urgent` is the file whose changes are told at once."""

    def __init__(self, folder: str, urgent: str) -> None:
        self._urgent = urgent.encode()
        self._events = _watch(folder)
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._next_look = 0.0

    def wake(self) -> None:
        """From now on nobody waits."""
        os.write(self._waker, b"!")

    def looked(self) -> None:
        """Something was found: what is not urgent may wait a moment until the next time."""
        self._next_look = time.monotonic() + LOOK_S

    def wait(self, seconds: float, also: int) -> None:
        """Returns when there may be something, or `also` can be read, or the time is over."""
        deadline = time.monotonic() + seconds
        if self._events < 0:  # the kernel gives only so many
            deadline = min(deadline, time.monotonic() + LOOK_S)
        poll = select.poll()
        for descriptor in (self._woken, self._events, also):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            ready = [descriptor for descriptor, _ in poll.poll(max(0.0, left) * 1000)]
            if ready != [self._events] or self._is_urgent():
                return
            deadline = min(deadline, self._next_look)

    def _is_urgent(self) -> bool:
        names = set()
        with contextlib.suppress(OSError):
            data = os.read(self._events, _ROOM)
            while data:
                _, _, _, length = struct.unpack_from(_EVENT, data)
                names.add(data[_EVENT_BYTES : _EVENT_BYTES + length].rstrip(b"\0"))
                data = data[_EVENT_BYTES + length :]
        return self._urgent in names


def _watch(folder: str) -> int:
    """A descriptor that can be read when something changes; -1 where there is none to be had."""
    kernel = ctypes.CDLL(None, use_errno=True)
    descriptor = int(kernel.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0:
        return -1
    seen = kernel.inotify_add_watch(
        descriptor, os.fsencode(folder), _MODIFIED | _MOVED_HERE | _CREATED
    )
    if seen < 0:
        os.close(descriptor)
        return -1
    return descriptor
