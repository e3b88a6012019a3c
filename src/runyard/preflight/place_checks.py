"""The folders of a job, the disk below them, its ports, its shared memory and its token."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from runyard.preflight.findings import Finding, failed, passed, warned

FLOOR_BYTES = 100 * 1024**2  # with less than this nothing can be trained
LOW_BYTES = 1024**3
SHARED_MEMORY_BYTES = 1024**3
_MOST_FILES = 20_000  # of one checkpoint
_WORKERS = re.compile(r"-{0,2}(?:\w+[._-])?num[_-]workers(?:=(\d+))?")
_HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def working_dir(cwd: str, made: Sequence[str]) -> Finding:
    """`made` are the folders that the start makes itself."""
    is_made = any(cwd == folder or folder.startswith(cwd + os.sep) for folder in made)
    if is_made and not os.path.lexists(cwd):
        return passed("working_dir", path=cwd)
    try:
        os.stat(cwd)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return failed("working_dir", "cwd_missing", path=cwd)
        return failed("working_dir", "cwd_unusable", path=cwd, message=error.strerror)
    if not os.path.isdir(cwd):
        return failed("working_dir", "cwd_unusable", path=cwd, message="not a directory")
    if not os.access(cwd, os.X_OK):
        message = os.strerror(errno.EACCES)
        return failed("working_dir", "cwd_unusable", path=cwd, message=message)
    return passed("working_dir", path=cwd)


def writable(check: str, folder: str) -> Finding:
    """Whether it can be made and written: tried, because rights alone do not tell. What was made
    for it is removed again."""
    made = _missing_folders(folder)
    try:
        for path in made:
            os.mkdir(path)
        _try_to_write(folder)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return failed("disk", "disk_full", path=folder, free_bytes=0, needed_bytes=FLOOR_BYTES)
        return failed(check, "path_unwritable", path=folder, message=error.strerror)
    finally:
        for path in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(path)
    return passed(check, path=folder)


def _missing_folders(path: str) -> list[str]:
    """From the outermost one in."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing[::-1]


def _try_to_write(folder: str) -> None:
    path = os.path.join(folder, f".runyard-preflight-{os.getpid()}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    os.unlink(path)


def existing_part(path: str) -> str:
    """The path itself, or the nearest folder above it that is there."""
    while not os.path.lexists(path) and (above := os.path.dirname(path)) != path:
        path = above
    return path


def disk(checkpoint_dir: str) -> Finding:
    where = existing_part(checkpoint_dir)
    try:
        found = os.statvfs(where)
    except OSError:
        return passed("disk")
    free = found.f_bavail * found.f_frsize
    last = newest_checkpoint_bytes(checkpoint_dir)
    params = {"path": where, "free_bytes": free, "checkpoint_bytes": last}
    if free < max(FLOOR_BYTES, last or 0):
        needed = max(FLOOR_BYTES, 2 * (last or 0))
        return failed("disk", "disk_full", **params, needed_bytes=needed)
    # A checkpoint is written before the one that it replaces is removed.
    if free < max(LOW_BYTES, 2 * (last or 0)):
        needed = max(LOW_BYTES, 2 * (last or 0))
        return warned("disk", "disk_low", **params, needed_bytes=needed)
    return passed("disk", **params)


def newest_checkpoint_bytes(folder: str) -> int | None:
    """Of what was written there last, a file or a folder of files."""
    try:
        newest = max(os.scandir(folder), key=lambda entry: entry.stat().st_mtime)
    except (OSError, ValueError):
        return None
    if not newest.is_dir(follow_symlinks=False):
        return newest.stat().st_size
    total = seen = 0
    for parent, _, names in os.walk(newest.path):
        for name in names:
            seen += 1
            if seen > _MOST_FILES:
                return total
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total


def ports(fixed: Mapping[str, int]) -> list[Finding]:
    """A warning: who has it now may be gone when the job starts."""
    found = []
    for service, port in fixed.items():
        if _is_taken(port):
            found.append(warned("ports", "port_in_use", port=port, service=service))
        else:
            found.append(passed("ports", port=port, service=service))
    return found


def _is_taken(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def shared_memory(words: Sequence[str]) -> list[Finding]:
    """Loader processes hand their batches over in shared memory; containers often have 64 MB."""
    if not _has_workers(words):
        return []
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return [warned("shared_memory", "no_shared_memory")]
    size = found.f_blocks * found.f_frsize
    if size < SHARED_MEMORY_BYTES:
        return [warned("shared_memory", "shared_memory_small", size_bytes=size)]
    return [passed("shared_memory", size_bytes=size)]


def _has_workers(words: Sequence[str]) -> bool:
    for place, word in enumerate(words):
        found = _WORKERS.fullmatch(word)
        if found is None:
            continue
        given = found[1] or (words[place + 1] if place + 1 < len(words) else "")
        if given.isdigit() and int(given) > 0:
            return True
    return False


def hub_token(env: Mapping[str, str]) -> Finding:
    """Models that everybody may have need none, so its absence is only noted."""
    if any(env.get(name) for name in _HUB_TOKENS):
        return passed("hub_token")
    cache = Path(env.get("HF_HOME") or os.path.join(env.get("HOME", "/"), ".cache/huggingface"))
    if (cache / "token").is_file():
        return passed("hub_token")
    return Finding("hub_token", "pass", "no_hub_token")
