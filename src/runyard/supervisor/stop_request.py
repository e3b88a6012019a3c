"""The stop request: a file beside the journal, and the nudge that makes the supervisor read it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

from runyard.supervisor import identity, journal, protocol

Request = dict[str, Any]


def write(
    folder: str,
    *,
    seq: int,
    cause: str,
    grace_s: float,
    requested_by: str,
    requested_at: float,
) -> None:
    """Ask for the end of the attempt. An older request never replaces a newer one, whoever else
    asks at the same moment."""
    request = {
        "v": protocol.VERSION,
        "seq": seq,
        "cause": cause,
        "grace_s": grace_s,
        "requested_by": requested_by,
        "requested_at": requested_at,
    }
    with _alone(folder):
        present = read(folder)
        if present is None or present["seq"] <= seq:
            _replace(f"{folder}/{protocol.STOP}", request)


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """One writer at a time, threads too: each opens the folder anew."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: it is only whole then
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _replace(path: str, request: Request) -> None:
    draft = f"{path}.{os.urandom(6).hex()}.tmp"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, json.dumps(request).encode())
    finally:
        os.close(fd)
    os.rename(draft, path)


def read(folder: str) -> Request | None:
    try:
        fd = os.open(f"{folder}/{protocol.STOP}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        request = json.loads(os.read(fd, 65536))
        if request["v"] != protocol.VERSION:
            return None
        return {
            "seq": int(request["seq"]),
            "cause": str(request["cause"]),
            "grace_s": float(request["grace_s"]),
            "requested_by": str(request["requested_by"]),
            "requested_at": float(request["requested_at"]),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(fd)


def nudge(folder: str) -> bool:
    """Make the supervisor look at the request now; False if it cannot be reached, it then finds
    the request at its next heartbeat."""
    try:
        record = journal.read(folder)
    except OSError:
        return False
    if record.supervisor is None or record.exit is not None:
        return False
    pidfd = identity.open_verified(record.supervisor)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGUSR1)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True
