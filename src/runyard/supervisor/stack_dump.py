"""Where every process of an attempt is right now: by py-spy if it is installed, by the program
itself if it imported runyard.report, and by what the kernel tells in any case."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from runyard.supervisor import belonging, journal, process_table, protocol

MOST_PROCESSES = 64
MOST_THREADS = 64
PY_SPY_S = 10.0
ANSWER_S = 3.0
MOST_BYTES = 1 << 20


class Dump(NamedTuple):
    """One process: which rank it is (None where it does not say), how it was read."""

    pid: int
    rank: int | None
    name: str
    by: str  # py-spy, faulthandler, proc
    text: str
    slice_index: int | None = None  # of an attempt on nodes


def of_attempt(
    run_dir: str, attempt_id: str, seconds: float, *, neighbours: bool = False
) -> list[Dump]:
    """Of every process that is proven to be the attempt's. With `neighbours` other slices of it
    may be on this machine, each with a folder of its own: theirs are left to them."""
    try:
        record = journal.read(run_dir)
    except OSError:
        return []
    if record.spec is None or record.first_process is None:
        return []
    claims = belonging.Claims({attempt_id: belonging.recorded(attempt_id, record)})
    living = sorted(claims.living())
    if neighbours:
        living = [pid for pid in living if _folder(pid) in (None, os.path.realpath(run_dir))]
    deadline = time.monotonic() + seconds
    return dump_all(living, lambda pid: claims.owner(pid) == attempt_id, Path(run_dir), deadline)


def dump_all(
    pids: Sequence[int], belongs: Callable[[int], bool], run_dir: Path, deadline: float
) -> list[Dump]:
    """Ranks first. Whoever has no time left until `deadline` (monotonic) is told by /proc."""
    ranked = sorted(pids, key=lambda pid: (_rank(pid) is None, _rank(pid) or 0, pid))
    spy = py_spy()
    return [_dump(pid, belongs, run_dir, spy, deadline) for pid in ranked[:MOST_PROCESSES]]


def _dump(
    pid: int, belongs: Callable[[int], bool], run_dir: Path, spy: str | None, deadline: float
) -> Dump:
    head = _proc_words(pid)
    left = deadline - time.monotonic()
    stacks, by = "", "proc"
    if spy and left > 1 and _is_python(pid):
        stacks, by = _spied(spy, pid, min(PY_SPY_S, left)), "py-spy"
    if not stacks and left > 1:
        stacks, by = _asked(pid, belongs, run_dir, min(ANSWER_S, left)), "faulthandler"
    if not stacks:
        by = "proc"
    text = f"{head}\n{stacks}\n" if stacks else head
    return Dump(pid, _rank(pid), _comm(pid), by, text[:MOST_BYTES])


# py-spy


def py_spy() -> str | None:
    """Where it is: beside this interpreter, or on the PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def _spied(spy: str, pid: int, timeout_s: float) -> str:
    argv = [spy, "dump", "--pid", str(pid)]
    try:
        done = subprocess.run(
            argv, capture_output=True, timeout=timeout_s, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


# the program itself


def _asked(pid: int, belongs: Callable[[int], bool], run_dir: Path, timeout_s: float) -> str:
    """Only a process that offered it, has a handler for it now, and is proven the attempt's."""
    path = run_dir / protocol.stacks_file(_inner_pid(pid))
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return ""
    try:
        before = path.stat().st_size
        if not _catches(pid, protocol.STACKS_SIGNAL) or not belongs(pid):
            return ""
        signal.pidfd_send_signal(pidfd, protocol.STACKS_SIGNAL)
        return _grown(path, before, timeout_s)
    except OSError:
        return ""
    finally:
        os.close(pidfd)


def _grown(path: Path, before: int, timeout_s: float) -> str:
    """What was appended, once it has stopped growing."""
    deadline = time.monotonic() + timeout_s
    size = before
    while time.monotonic() < deadline:
        time.sleep(0.05)
        now = path.stat().st_size
        if now == size and now > before:
            break
        size = now
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.pread(fd, MOST_BYTES, before).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _catches(pid: int, number: int) -> bool:
    mask = _status(pid).get("SigCgt", "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


def _inner_pid(pid: int) -> int:
    """Its number as it knows it itself, in a pid namespace of its own."""
    words = _status(pid).get("NSpid", "").split()
    return int(words[-1]) if words else pid


# /proc


def _proc_words(pid: int) -> str:
    """What it is, what it waits for, and the same of its threads."""
    status = _status(pid)
    command = process_table.command_line(pid).replace(b"\0", b" ").decode("utf-8", "replace")
    lines = [f"process {pid} ({_comm(pid)}): {command.strip()}"]
    kept = ("State", "PPid", "Threads", "VmRSS", "VmSwap", "SigBlk", "SigCgt")
    lines += [f"  {name}: {status[name]}" for name in kept if name in status]
    try:
        threads = sorted(map(int, os.listdir(f"/proc/{pid}/task")))[:MOST_THREADS]
    except OSError:
        threads = []
    for thread in threads:
        lines += _thread_words(pid, thread)
    return "\n".join(lines) + "\n"


def _thread_words(pid: int, thread: int) -> list[str]:
    folder = f"/proc/{pid}/task/{thread}"
    told = {name: _line(f"{folder}/{name}") for name in ("comm", "wchan", "syscall")}
    stat = _line(f"{folder}/stat").rpartition(")")[2].split()
    state = stat[0] if stat else "?"
    waits = told["wchan"] if told["wchan"] not in ("", "0") else "-"
    lines = [f"  thread {thread} ({told['comm']}) {state} in {waits}, syscall {told['syscall']}"]
    kernel = _text(f"{folder}/stack")
    return lines + [f"      {line}" for line in kernel.splitlines()[:30]]


def _status(pid: int) -> dict[str, str]:
    found = {}
    for line in _text(f"/proc/{pid}/status").splitlines():
        name, _, value = line.partition(":")
        found[name] = value.strip()
    return found


def _is_python(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    return False


def _rank(pid: int) -> int | None:
    told = _variable(pid, "RANK")
    return int(told) if told.isdigit() else None


def _folder(pid: int) -> str | None:
    told = _variable(pid, protocol.RUN_DIR)
    return os.path.realpath(told) if told else None


def _variable(pid: int, name: str) -> str:
    environment = process_table.read(f"/proc/{pid}/environ") or b""
    begin = f"{name}=".encode()
    found = (line for line in environment.split(b"\0") if line.startswith(begin))
    return os.fsdecode(next(found, begin)[len(begin) :])


def _comm(pid: int) -> str:
    return _line(f"/proc/{pid}/comm")


def _line(path: str) -> str:
    return _text(path).strip()


def _text(path: str) -> str:
    return (process_table.read(path, 65536) or b"").decode("utf-8", "replace")
