"""Errors as a person reads them: what, why, what to do; no tracebacks."""

from __future__ import annotations

import sys
from typing import Any

from runyard.cli import exit_codes, wording
from runyard.sdk import errors


class Complaint(Exception):
    """Something the command itself refuses; `code` becomes the exit code."""

    def __init__(self, message: str, *, hint: str = "", code: int = exit_codes.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def tell(error: Exception) -> int | None:
    """Word the error on stderr and return the exit code; None when it is no expected error."""
    if isinstance(error, Complaint):
        _say(error.message, error.hint)
        return error.code
    if isinstance(error, errors.RunyardError):
        _say(*_worded(error))
        return _exit_code(error)
    if type(error).__module__ == "runyard.domain.errors":  # settings that cannot be read
        _say(
            wording.error(getattr(error, "code", ""), getattr(error, "params", {}), str(error)), ""
        )
        return exit_codes.USAGE
    if isinstance(error, OSError) and error.filename is not None:
        _say(f"{error.filename}: {error.strerror}", "")
        return exit_codes.FAILED
    return None


def _exit_code(error: errors.RunyardError) -> int:
    if isinstance(error, (errors.ServerUnreachable, errors.Unavailable)):
        return exit_codes.UNREACHABLE
    if isinstance(error, errors.NotFound):
        return exit_codes.NOT_FOUND
    if isinstance(error, errors.WaitTimeout):
        return exit_codes.NOT_YET
    refused = (
        errors.BadRequest,
        errors.Conflict,
        errors.Unauthenticated,
        errors.Forbidden,
        errors.TooManyFailedLogins,
    )
    return exit_codes.REFUSED if isinstance(error, refused) else exit_codes.FAILED


def _worded(error: errors.RunyardError) -> tuple[str, str]:
    told = wording.error(error.error_code, error.params, error.message)
    lines = [told]
    for field in error.params.get("fields") or ():
        words = str(field.get("message") or "") if isinstance(field, dict) else ""
        if words and words not in told:
            lines.append(f"  {field.get('field', '?')}: {words}")
    nearest = error.params.get("nearest")
    if nearest and f"'{nearest}'" not in told:
        lines.append("  " + wording.say("did_you_mean", name=nearest))
    return "\n".join(lines), _hint(error)


def _hint(error: errors.RunyardError) -> str:
    params: dict[str, Any] = {"url": "", **error.params}
    if isinstance(error, errors.ServerUnreachable):
        return wording.say("hint_unreachable", **params)
    if isinstance(error, errors.Unauthenticated):
        return wording.say("hint_unauthenticated")
    if isinstance(error, errors.JobNotFound):
        return wording.say("hint_job_not_found")
    if error.request_id and type(error) is errors.RunyardError:
        return wording.say("hint_internal", request_id=error.request_id)
    return ""


def _say(message: str, hint: str) -> None:
    print(f"runyard: {message}", file=sys.stderr)
    if hint:
        print(hint, file=sys.stderr)
