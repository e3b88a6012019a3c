"""What a command's exit code says (docs/cli.md has the same table)."""

from __future__ import annotations

from runyard.sdk import errors

OK = 0
FAILED = 1
USAGE = 2
UNREACHABLE = 3
NOT_FOUND = 4
REFUSED = 5
NOT_YET = 6
HANGUP = 129
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143


def of_error(error: errors.RunyardError) -> int:
    if isinstance(error, (errors.ServerUnreachable, errors.Unavailable)):
        return UNREACHABLE
    if isinstance(error, errors.NotFound):
        return NOT_FOUND
    if isinstance(error, errors.WaitTimeout):
        return NOT_YET
    refused = (
        errors.BadRequest,
        errors.Conflict,
        errors.Unauthenticated,
        errors.Forbidden,
        errors.TooManyFailedLogins,
    )
    return REFUSED if isinstance(error, refused) else FAILED
