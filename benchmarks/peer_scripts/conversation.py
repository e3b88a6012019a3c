"""How a peer's script talks with the benchmark: JSON lines, one answer to each question.

The script is alone with a loopback interface of its own where it may be, all that it starts stays
below it, and is ended by pid when the conversation is over.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWUTS, CLONE_NEWNET = 0x04000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8913, 0x8914, 0x8916, 1


class Peer(Protocol):
    def start(self) -> None: ...
    def submit(self, command: list[str]) -> str: ...
    def cancel(self, ref: str) -> None: ...
    def state(self, ref: str) -> tuple[str, bool]:
        """The peer's own word for the job's state, and whether it means that all is over."""
        ...

    def close(self) -> None:
        """Remove what is not in the folder; processes are ended before."""
        ...


def hold(make: Callable[[Path], Peer]) -> None:
    """Start the peer in a folder of its own, answer until the benchmark closes the line.

    Below a small init, as on a real machine: an orphan that nobody reaps would look alive.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.geteuid() == 0 and libc.unshare(CLONE_NEWNET | CLONE_NEWUTS) == 0:
        _raise_loopback()
        socket.sethostname("localhost")  # a name that can be looked up, wherever this runs
    with tempfile.TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        peer = make(Path(folder))
        if (child := os.fork()) == 0:
            os._exit(_converse(peer, Path(folder)))
        while (ended := os.wait())[0] != child:
            pass
        end_descendants()
        peer.close()
    sys.exit(os.waitstatus_to_exitcode(ended[1]))


def _converse(peer: Peer, folder: Path) -> int:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the peer prints is no answer
    try:
        peer.start()
        print(json.dumps({"ready": True}), file=answers)
        for line in sys.stdin:
            print(json.dumps(_answer(peer, json.loads(line))), file=answers)
    except Exception:
        for log in folder.glob("*.log"):
            print(f"{log.name}: {log.read_text(errors='replace')[-1500:]}", file=sys.stderr)
        traceback.print_exc()
        sys.stderr.flush()
        return 1
    return 0


def _answer(peer: Peer, asked: dict[str, Any]) -> dict[str, Any]:
    if asked["do"] == "submit":
        return {"ref": peer.submit(asked["command"])}
    if asked["do"] == "cancel":
        peer.cancel(asked["ref"])
        return {}
    if asked["do"] == "cancel by library":  # which saves the peer the start of a program
        peer.cancel_by_library(asked["ref"])  # type: ignore[attr-defined]
        return {}
    state, final = peer.state(asked["ref"])
    return {"state": state, "final": final}


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(probe, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
        # A second address: with 127.0.0.1 alone the resolver finds that there is no IPv4 here.
        second = struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, bytes((127, 0, 0, 2)))
        fcntl.ioctl(probe, SIOCSIFADDR, second)


def output_of(*words: object, **options: Any) -> str:
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=False, timeout=60, **options
    )
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def daemon(folder: Path, name: str, *words: object, **options: Any) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [*map(str, words)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
        )


def until(reached: Callable[[], object], seconds: float, what: str) -> None:
    limit = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > limit:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


def end_descendants() -> None:
    """All that we started: orphans are adopted by us, so whatever lives is below us."""
    limit = time.monotonic() + 20
    while (left := _descendants()) and time.monotonic() < limit:
        for pid, started in left.items():
            try:
                pidfd = os.pidfd_open(pid)
                if _parent_and_start(pid)[1] == started:  # the number is still its own
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)
                os.waitpid(pid, os.WNOHANG)
            except OSError:
                continue
        time.sleep(0.05)


def _descendants() -> dict[int, str]:
    """pid -> when it started, in ticks."""
    children: dict[int, dict[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent, started = _parent_and_start(int(entry.name))
            except OSError:
                continue
            children.setdefault(parent, {})[int(entry.name)] = started
    found: dict[int, str] = {}
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), {})
        found |= below
        todo += below
    return found


def _parent_and_start(pid: int) -> tuple[int, str]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), fields[19]
