"""System calls that the standard library does not offer, through ctypes where there is ctypes."""

from __future__ import annotations

import errno
import fcntl
import os
import resource

try:
    import ctypes

    _libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):  # minimal Pythons are built without ctypes
    _libc = None

_IPC_RMID = 0
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_PR_SET_NO_NEW_PRIVS = 38
_FALLOC_KEEP_SIZE = 1
_FALLOC_PUNCH_HOLE = 2
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
MS_PLAIN = 2 | 4  # no set-uid programs, no devices
MS_NOEXEC = 8
MS_REC = 1 << 14
MS_SLAVE = 1 << 19
RLIMIT_LOCKS = 10  # ignored by Linux since 2.4.25, inherited by everything: it carries our tag

if _libc is not None:
    _libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    _libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    _libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]

available = _libc is not None


def _prctl(option: int, value: int) -> bool:
    return _libc is not None and _libc.prctl(option, value, 0, 0, 0) == 0


def become_subreaper() -> bool:
    """Orphans below this process become its children."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def is_subreaper() -> bool:
    if _libc is None:
        return False
    flag = ctypes.c_int(0)
    _libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(flag), 0, 0, 0)
    return flag.value == 1


def die_with_parent(signal_number: int) -> bool:
    return _prctl(_PR_SET_PDEATHSIG, signal_number)


def no_new_privileges() -> bool:
    return _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forbid_core_dump() -> bool:
    return _prctl(_PR_SET_DUMPABLE, 0)


def unshare(flags: int) -> None:
    """OSError where the machine does not allow it."""
    _check(_libc is not None and _libc.unshare(flags) == 0)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """OSError where the machine does not allow it."""
    words = [word.encode() for word in (source, target, kind)]
    _check(_libc is not None and _libc.mount(*words, flags, options.encode()) == 0)


def _check(done: bool) -> None:
    if not done:
        number = ctypes.get_errno() if _libc is not None else errno.ENOSYS
        raise OSError(number, os.strerror(number))


def signal_when_readable(fd: int) -> None:
    """SIGIO to this process at every change of a descriptor that does not block from now on."""
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_NONBLOCK | os.O_ASYNC)


def remove_segment(segment_id: int) -> bool:
    """Remove a segment of System V shared memory."""
    return _libc is not None and _libc.shmctl(segment_id, _IPC_RMID, None) == 0


def name_process(name: str) -> None:
    """What `ps` shows as the command name."""
    if _libc is not None:
        buffer = ctypes.create_string_buffer(name.encode()[:15])
        _libc.prctl(_PR_SET_NAME, ctypes.addressof(buffer), 0, 0, 0)


def reserve(fd: int, length: int) -> bool:
    """Reserve disk blocks behind the end of the file without changing its size; False where that
    is not supported, or when the disk is full already."""
    try:
        return _fallocate(fd, _FALLOC_KEEP_SIZE, 0, length)
    except OSError:
        return False


def punch_hole(fd: int, start: int, end: int) -> bool:
    """Give back the blocks of a range; size and offsets stay. False where it is not supported."""
    return _fallocate(fd, _FALLOC_KEEP_SIZE | _FALLOC_PUNCH_HOLE, start, end - start)


def _fallocate(fd: int, mode: int, offset: int, length: int) -> bool:
    if _libc is None:
        return False
    if _libc.fallocate(fd, mode, offset, length) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EOPNOTSUPP, errno.ENOSYS, errno.ENODEV, errno.EINVAL):
        return False
    raise OSError(number, os.strerror(number))


def set_tag(tag: int) -> bool:
    """Mark this process and everything it will start with the attempt's tag."""
    try:
        resource.setrlimit(RLIMIT_LOCKS, (tag, tag))
    except (ValueError, OSError):
        return False
    return True
