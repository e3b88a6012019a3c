"""The link directory of one job: finished items appear in it whole, by name.

Hard links where the cache is on the same file system: they keep the content alive and count
themselves as use. Symbolic links and a written note of their use where it is not.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil

from runyard.prefetch.cache import Blob, Cache
from runyard.prefetch.failures import Failure

_INCOMING = ".incoming-"
_NOT_LINKABLE = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}


class Links:
    """What is not complete waits in a folder of this process, removed with the next one's start
    if this one is killed."""

    def __init__(self, cache: Cache, folder: str) -> None:
        self._cache, self._folder = cache, folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._drop_leftovers()
        self._incoming = os.path.join(folder, f"{_INCOMING}{os.getpid()}")
        for part in ("new", "before"):
            os.makedirs(os.path.join(self._incoming, part), mode=0o700)
        self._fd = os.open(self._incoming, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def add(self, name: str, path: str, blob: Blob) -> None:
        """Link a file of an item; within `Cache.linking`, so that the blob is there."""
        target = os.path.join(self._whole(name), path) if path else self._whole(name)
        try:
            os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise Failure("bad_answer", None, reason="unsafe_path", path=path) from None
        try:
            os.link(blob.path, target)
        except FileExistsError:
            raise Failure("bad_answer", None, reason="unsafe_path", path=path) from None
        except OSError as error:
            if error.errno not in _NOT_LINKABLE:
                raise
            self._note_use(blob)
            os.symlink(blob.path, target)

    def add_local(self, name: str, path: str) -> None:
        os.symlink(path, self._whole(name))

    def publish(self, name: str) -> str:
        """Put a complete item in its place, over what an earlier run left there."""
        target = os.path.join(self._folder, name)
        if os.path.lexists(target):
            # Aside first: renaming a file over another link of the same one would do nothing.
            os.rename(target, os.path.join(self._incoming, "before", name))
        os.rename(self._whole(name), target)
        return target

    def close(self) -> None:
        shutil.rmtree(self._incoming, ignore_errors=True)
        os.close(self._fd)

    def _whole(self, name: str) -> str:
        return os.path.join(self._incoming, "new", name)

    def _note_use(self, blob: Blob) -> None:
        name = hashlib.sha256(os.fsencode(self._folder)).hexdigest()
        path = self._cache.path("uses", name)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            head = "" if os.fstat(fd).st_size else json.dumps(self._folder) + "\n"
            os.write(fd, f"{head}{blob.sha256}\n".encode())
        finally:
            os.close(fd)

    def _drop_leftovers(self) -> None:
        for entry in os.scandir(self._folder):
            if not entry.name.startswith(_INCOMING) or not entry.is_dir(follow_symlinks=False):
                continue
            with contextlib.suppress(OSError):
                fd = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(entry.path, ignore_errors=True)
                finally:
                    os.close(fd)
