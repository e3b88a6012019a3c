"""What a client can meet. Each class answers to one stable code of the server's problem shape.

RunyardError
+- ServerUnreachable      no answer: nobody listens, or the connection broke
+- WaitTimeout            the time given to a wait is over
+- BadRequest             400/422 (InvalidJob, UnknownField, JobTypeNotAvailable, DependencyCycle,
|                         UnknownDependency, UnknownDataset, BadJson, InvalidRequest, TooLarge ...)
+- NotFound               404 (JobNotFound)
+- Conflict               409 (AlreadyEnded, NotEnded, IllegalMove, IdempotencyConflict ...)
+- Unauthenticated        401
+- Forbidden              403
+- TooManyFailedLogins    429
+- Unavailable            503/507 (DiskFull, StoreReadOnly, ShuttingDown)
+- LocalServiceFailed     a service on this machine that the job needs did not start, or ended
+- StartRefused           embedding: it cannot work on this data directory or database
   +- DataDirInUse        a server or another manager has the data directory
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class RunyardError(Exception):
    """`code` is stable; `message` is English; `params` is for programs; `request_id` finds the
    request in the server's log (None when no server answered)."""

    code: ClassVar[str] = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        params: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_code = code or type(self).code
        self.params: dict[str, Any] = dict(params or {})
        self.request_id = request_id
        self.status = status


class ServerUnreachable(RunyardError):
    code = "server_unreachable"


class WaitTimeout(RunyardError):
    code = "wait_timeout"


class BadRequest(RunyardError):
    code = "bad_request"


class InvalidJob(BadRequest):
    code = "invalid_job"


class UnknownField(BadRequest):
    code = "unknown_field"


class JobTypeNotAvailable(BadRequest):
    code = "job_type_not_available"


class DrillNotAvailable(BadRequest):
    code = "drill_not_available"


class DrillServerStays(BadRequest):
    code = "drill_server_stays"


class DependencyCycle(BadRequest):
    code = "dependency_cycle"


class UnknownDependency(BadRequest):
    code = "unknown_dependency"


class UnknownDataset(BadRequest):
    code = "unknown_dataset"


class BadJson(BadRequest):
    code = "bad_json"


class InvalidRequest(BadRequest):
    code = "invalid_request"


class MethodNotAllowed(BadRequest):
    code = "method_not_allowed"


class WrongHost(BadRequest):
    code = "wrong_host"


class TooLarge(BadRequest):
    code = "too_large"


class NotFound(RunyardError):
    code = "not_found"


class JobNotFound(NotFound):
    code = "job_not_found"


class Conflict(RunyardError):
    code = "conflict"


class IllegalMove(Conflict):
    code = "illegal_move"


class StaleWrite(Conflict):
    code = "stale_write"


class AlreadyEnded(Conflict):
    code = "already_ended"


class NotEnded(Conflict):
    code = "not_ended"


class DrillTooEarly(Conflict):
    code = "drill_too_early"


class NoLease(Conflict):
    code = "no_lease"


class IdempotencyConflict(Conflict):
    code = "idempotency_conflict"


class Unauthenticated(RunyardError):
    code = "unauthenticated"


class Forbidden(RunyardError):
    code = "forbidden"


class WrongOrigin(Forbidden):
    code = "wrong_origin"


class WrongCsrfToken(Forbidden):
    code = "wrong_csrf_token"


class TooManyFailedLogins(RunyardError):
    code = "too_many_failed_logins"


class Unavailable(RunyardError):
    code = "unavailable"


class DiskFull(Unavailable):
    code = "disk_full"


class StoreReadOnly(Unavailable):
    code = "store_read_only"


class ShuttingDown(Unavailable):
    code = "shutting_down"


class LocalServiceFailed(RunyardError):
    code = "local_service_failed"


class StartRefused(RunyardError):
    code = "start_refused"


class DataDirInUse(StartRefused):
    code = "data_dir_in_use"


class DataDirUnusable(StartRefused):
    code = "data_dir_unusable"


class NetworkFileSystem(StartRefused):
    code = "network_file_system"


class SchemaTooNew(StartRefused):
    code = "schema_too_new"


class BadSettings(StartRefused):
    code = "bad_settings"


def _with_subclasses(kind: type[RunyardError]) -> list[type[RunyardError]]:
    return [kind] + [below for child in kind.__subclasses__() for below in _with_subclasses(child)]


BY_CODE = {kind.code: kind for kind in _with_subclasses(RunyardError)}

_BY_STATUS: dict[int, type[RunyardError]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: BadRequest,
    409: Conflict,
    413: TooLarge,
    421: WrongHost,
    422: BadRequest,
    429: TooManyFailedLogins,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: DiskFull,
}


def from_problem(status: int, body: Any) -> RunyardError:
    """The exception for an answer that is not a success; `body` is the parsed JSON or None."""
    problem = body if isinstance(body, dict) else {}
    code = problem.get("code")
    kind = BY_CODE.get(str(code)) or _BY_STATUS.get(status, RunyardError)
    message = problem.get("message") or f"The server answered with status {status}."
    return kind(
        str(message),
        code=str(code) if code else None,
        params=problem.get("params") or {},
        request_id=problem.get("request_id"),
        status=status,
    )
