"""Removing the attempt's temporary directory, never following a link out of it."""

from __future__ import annotations

import os
import stat


def remove(path: str) -> bool:
    """True if it is gone. The empty directory, the usual case, costs one system call."""
    try:
        os.rmdir(path)
        return True
    except FileNotFoundError:
        return True
    except OSError:
        pass
    try:
        _remove_tree(path)
    except OSError:
        return False
    return True


def _remove_tree(path: str) -> None:
    """Depth first without recursion: jobs can nest deeper than Python's stack."""
    pending = [path]
    while pending:
        current = pending[-1]
        try:
            os.rmdir(current)
            pending.pop()
            continue
        except NotADirectoryError:
            os.unlink(current)
            pending.pop()
            continue
        except FileNotFoundError:
            pending.pop()
            continue
        except OSError:
            pass
        before = len(pending)
        os.chmod(current, stat.S_IRWXU)
        with os.scandir(current) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    os.unlink(entry.path)
        if len(pending) == before:
            os.rmdir(current)
            pending.pop()
