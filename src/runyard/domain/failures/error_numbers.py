"""What error numbers of the operating system and of HTTP mean."""

from __future__ import annotations

import errno
import re

from runyard.domain.failures.categories import Category

_PATHS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_BROKEN = (
    errno.EIO,
    errno.EROFS,
    errno.ESTALE,
    errno.ENOTCONN,
    errno.ESHUTDOWN,
    errno.EREMOTEIO,
    errno.ENOLCK,
    errno.ENODEV,
    errno.ENXIO,
)
_LIMITS = (errno.EMFILE, errno.ENFILE, errno.EAGAIN)
_NET = (
    errno.ECONNRESET,
    errno.ECONNREFUSED,
    errno.ECONNABORTED,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.ETIMEDOUT,
    -2,  # of the resolver
    -3,
)
_OF_SYSTEM = {
    **dict.fromkeys(_PATHS, Category.PATH),
    **dict.fromkeys(_FULL, Category.DISK_FULL),
    **dict.fromkeys(_BROKEN, Category.STORAGE),
    **dict.fromkeys(_LIMITS, Category.FD_LIMIT),
    **dict.fromkeys(_NET, Category.NETWORK),
    errno.ENOMEM: Category.HOST_OOM,
    errno.EADDRINUSE: Category.PORT_IN_USE,
    errno.ENOEXEC: Category.CONFIG,
    errno.E2BIG: Category.CONFIG,
}
_NUMBER = re.compile(
    r"\[Errno (-?\d{1,3})\]|\(os error (\d{1,3})\)|\berrno ?[=:] ?(\d{1,3})\b"
    r"|\bOs \{ code: (\d{1,3}),"
)
_NAMES_A_FILE = re.compile(r": ['\"](?:/|\./|[\w-]{1,60}/)[^'\"]{1,400}['\"]")

_CODES = {
    "INVALID_ARGUMENT": Category.CODE,
    "OUT_OF_RANGE": Category.CODE,
    "UNIMPLEMENTED": Category.CODE,
    "NOT_FOUND": Category.PATH,
    "ALREADY_EXISTS": Category.PATH,
    "PERMISSION_DENIED": Category.AUTH,
    "UNAUTHENTICATED": Category.AUTH,
    "UNAVAILABLE": Category.NETWORK,
    "DEADLINE_EXCEEDED": Category.NETWORK,
}
_CODE = re.compile(rf"\b({'|'.join(_CODES)})\b")
_STATUS = re.compile(
    r"(?i)(?:\bhttp(?:/\d\.\d)?(?: error| status)?|\bstatus(?:[ _]code)?|\berror(?: code)?"
    r"|\breturned error|an error occurred|\bresponse)(?: is| was)?[ :=(\[]{1,4}([45]\d\d)\b"
    r"|\b([45]\d\d) (?:Client|Server) Error"
    r"|\b([45]\d\d):? (?:Unauthorized|Forbidden|Not Found|Too Many|Bad Gate|Service Un|Gateway)"
)


def of_system(message: str) -> Category | None:
    """By the number, whatever language the words beside it are in."""
    found = _NUMBER.search(message)
    if found is None:
        return None
    number = int(next(group for group in found.groups() if group is not None))
    category = _OF_SYSTEM.get(number)
    if category is Category.NETWORK and _NAMES_A_FILE.search(message, found.end()):
        return Category.STORAGE  # a file system that is reached by network
    return category


def of_code(message: str) -> Category | None:
    """By the codes that gRPC, XLA and the clouds share."""
    found = _CODE.search(message)
    return None if found is None else _CODES[found.group(1)]


def of_http(message: str) -> Category | None:
    found = _STATUS.search(message)
    if found is None:
        return None
    number = int(next(group for group in found.groups() if group is not None))
    if number in (401, 403, 407):
        return Category.AUTH
    if number in (404, 410):
        return Category.PATH
    if number == 429:
        return Category.RATE_LIMIT
    if number >= 500 or number in (408, 425):
        return Category.NETWORK
    return Category.CODE  # the request itself is refused, each time again
