"""What SQLite says, as errors of the domain."""

from __future__ import annotations

import os
import sqlite3

from runyard.domain import errors

_LITTLE_SPACE = 1024 * 1024


def domain_error(error: sqlite3.Error | sqlite3.Warning, path: str) -> errors.RunyardError:
    # The low byte of an extended code is the primary one.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return errors.DiskFull()
    if code == sqlite3.SQLITE_READONLY:
        return errors.StoreReadOnly(path=path)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        # A full disk also shows as a failed sync or a file that could not be made.
        return errors.DiskFull() if _is_full(path) else errors.Unavailable(_told(error))
    if code == sqlite3.SQLITE_CONSTRAINT:
        return _constraint(error)
    return errors.Unavailable(_told(error))


def is_foreign_key(error: BaseException) -> bool:
    return (
        isinstance(error, sqlite3.IntegrityError)
        and error.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    )


def _constraint(error: sqlite3.Error | sqlite3.Warning) -> errors.RunyardError:
    if is_foreign_key(error):
        return errors.BadRequest("It refers to something that does not exist.")
    told = str(error)
    if "grants." in told or "idempotency_keys." in told or "attempts." in told:
        return errors.StaleWrite()
    return errors.Conflict(f"There is one like it already ({told}).")


def _told(error: BaseException) -> str:
    return f"The database cannot be used right now: {error}."


def _is_full(path: str) -> bool:
    try:
        disk = os.statvfs(os.path.dirname(path) or ".")
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _LITTLE_SPACE
