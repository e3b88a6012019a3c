"""Every error a person or program can meet, with codes that never change.

RunyardError
+- BadRequest             400/422: what was asked is wrong
|  +- BadJson               bad_json              the body is not JSON in UTF-8
|  +- InvalidRequest        invalid_request       parameters that do not fit, each with its reason
|  +- InvalidJob            invalid_job           fields that do not fit, each with its reason
|  +- UnknownField          unknown_field         with the nearest right name
|  +- JobTypeNotAvailable   job_type_not_available
|  +- DependencyCycle       dependency_cycle
|  +- UnknownDependency     unknown_dependency
|  +- UnknownDataset        unknown_dataset
+- NotFound               404
|  +- JobNotFound           job_not_found
+- MethodNotAllowed       405  method_not_allowed
+- Conflict               409: what was asked does not fit the state it is in
|  +- IllegalMove           illegal_move
|  +- StaleWrite            stale_write           somebody else changed it first
|  +- AlreadyEnded          already_ended
|  +- NotEnded              not_ended
|  +- NoLease               no_lease              the job was submitted without one
|  +- IdempotencyConflict   idempotency_conflict
+- Unauthenticated        401  unauthenticated
+- Forbidden              403  forbidden
+- WrongHost              421  wrong_host            called by a name that is not this server's
+- WrongOrigin            403  wrong_origin          a web page of another site asked
+- WrongCsrfToken         403  wrong_csrf_token      a session without its page's token
+- TooManyFailedLogins    429  too_many_failed_logins
+- TooLarge               413  too_large
+- Unavailable            503: the server cannot do it now
|  +- DiskFull              disk_full
|  +- StoreReadOnly         store_read_only
|  +- ShuttingDown          shutting_down
+- StartRefused           the server does not start
   +- DataDirInUse          data_dir_in_use
   +- DataDirUnusable       data_dir_unusable
   +- NetworkFileSystem     network_file_system
   +- SchemaTooNew          schema_too_new
   +- KeysRequired          keys_required
   +- AddressInUse          address_in_use
   +- BadSettings           bad_settings
"""

from __future__ import annotations

from typing import Any, ClassVar


class RunyardError(Exception):
    """`code` is stable; `message` is English for logs and the CLI; `params` is for programs."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    text: ClassVar[str] = "Something went wrong inside Runyard."

    def __init__(self, message: str | None = None, **params: Any) -> None:
        self.params: dict[str, Any] = params
        self.message = message if message is not None else self.text.format_map(_Lenient(params))
        super().__init__(self.message)


class _Lenient(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


class BadRequest(RunyardError):
    code = "bad_request"
    status = 400
    text = "The request cannot be understood."


class BadJson(BadRequest):
    code = "bad_json"
    text = "The body is not valid JSON in UTF-8: {why}."


class InvalidRequest(BadRequest):
    """params: fields, a list of {field, code, message}."""

    code = "invalid_request"
    status = 422
    text = "The request is not valid."


class InvalidJob(BadRequest):
    """params: fields, a list of {field, code, message}."""

    code = "invalid_job"
    status = 422
    text = "The job is not valid."


class UnknownField(BadRequest):
    """params: field, nearest (or null), fields with all such, besides with what else is wrong."""

    code = "unknown_field"
    status = 422
    text = "There is no field '{field}'."


class JobTypeNotAvailable(BadRequest):
    code = "job_type_not_available"
    status = 422
    text = "Jobs of type '{job_type}' are not available in this release."


class DrillNotAvailable(BadRequest):
    code = "drill_not_available"
    status = 422
    text = "There is no fault '{fault}'; there are {faults}."


class DrillServerStays(BadRequest):
    """A server inside another program would take that program down with it."""

    code = "drill_server_stays"
    status = 422
    text = (
        "This server was not started by 'runyard server' and could not come back: it does not do "
        "the fault 'server'."
    )


class DependencyCycle(BadRequest):
    code = "dependency_cycle"
    status = 422
    text = "The dependencies form a cycle: {cycle}."


class UnknownDependency(BadRequest):
    code = "unknown_dependency"
    status = 422
    text = "depends_on names {job}, and there is no such job."


class UnknownDataset(BadRequest):
    code = "unknown_dataset"
    status = 422
    text = "dataset_ids names {dataset}, and there is no such dataset."


class NotFound(RunyardError):
    code = "not_found"
    status = 404
    text = "There is no such thing here."


class JobNotFound(NotFound):
    code = "job_not_found"
    text = "There is no job {job}."


class MethodNotAllowed(RunyardError):
    code = "method_not_allowed"
    status = 405
    text = "{method} is not possible here."


class Conflict(RunyardError):
    code = "conflict"
    status = 409
    text = "This does not fit the state it is in."


class IllegalMove(Conflict):
    code = "illegal_move"
    text = "A job that is {status} cannot become {to}."


class StaleWrite(Conflict):
    code = "stale_write"
    text = "Somebody else changed it first."


class AlreadyEnded(Conflict):
    code = "already_ended"
    text = "Job {job} has already ended: {status}."


class NotEnded(Conflict):
    code = "not_ended"
    text = "Job {job} is still {status}. Cancel it first, or wait for its end."


class DrillTooEarly(Conflict):
    """params: job, waits_for (start, first step, first checkpoint, second checkpoint)."""

    code = "drill_too_early"
    text = "The drill of {job} waits for its {waits_for}."


class NoLease(Conflict):
    code = "no_lease"
    text = "Job {job} was submitted without a lease."


class IdempotencyConflict(Conflict):
    code = "idempotency_conflict"
    text = "This Idempotency-Key was used in the last 24 hours with another body."


class Unauthenticated(RunyardError):
    code = "unauthenticated"
    status = 401
    text = "A valid key is needed: send 'Authorization: Bearer <key>'."


class Forbidden(RunyardError):
    code = "forbidden"
    status = 403
    text = "Key '{name}' (role {role}) may not do this."


class WrongHost(RunyardError):
    code = "wrong_host"
    status = 421
    text = (
        "This server does not go by the name '{host}'. Add the name to allowed_hosts if it should."
    )


class WrongOrigin(RunyardError):
    code = "wrong_origin"
    status = 403
    text = "A web page of {origin} may not do this."


class WrongCsrfToken(RunyardError):
    code = "wrong_csrf_token"
    status = 403
    text = "To change something, a session needs its token in the header X-CSRF-Token."


class TooManyFailedLogins(RunyardError):
    code = "too_many_failed_logins"
    status = 429
    text = "Too many wrong keys from {address}. Try again in {retry_after_s} s."


class TooLarge(RunyardError):
    code = "too_large"
    status = 413
    text = "The request is larger than {limit_bytes} bytes."


class Unavailable(RunyardError):
    code = "unavailable"
    status = 503
    text = "The server cannot do this right now."


class DiskFull(Unavailable):
    code = "disk_full"
    status = 507
    text = (
        "The disk of the data directory is full. Nothing was accepted; "
        "free some space and try again."
    )


class StoreReadOnly(Unavailable):
    code = "store_read_only"
    text = "The data directory cannot be written: {path}."


class ShuttingDown(Unavailable):
    code = "shutting_down"
    text = "The server is shutting down."


class StartRefused(RunyardError):
    code = "start_refused"
    text = "The server does not start."


class DataDirInUse(StartRefused):
    code = "data_dir_in_use"
    text = (
        "Another Runyard server (pid {pid}) already runs on {path}. "
        "Stop it first, or choose another --data-dir."
    )


class DataDirUnusable(StartRefused):
    code = "data_dir_unusable"
    text = "The data directory {path} cannot be used: {why}."


class NetworkFileSystem(StartRefused):
    code = "network_file_system"
    text = (
        "{path} is on a network file system ({kind}), where locks and sockets are not reliable. "
        "Use a local path, for example --data-dir {proposal}."
    )


class SchemaTooNew(StartRefused):
    code = "schema_too_new"
    text = (
        "The database was written by a newer Runyard (schema {found}, this one knows {known}). "
        "Upgrade Runyard, or restore a backup made before the upgrade."
    )


class KeysRequired(StartRefused):
    code = "keys_required"
    text = (
        "Listening on {host} lets other machines in, "
        "and this server has no keys that a person made. "
        "Make one first with 'runyard keys create NAME', or listen on 127.0.0.1."
    )


class AddressInUse(StartRefused):
    code = "address_in_use"
    text = "Port {port} on {host} is taken. Choose another with --port."


class BadSettings(StartRefused):
    code = "bad_settings"
    text = "The setting {name} is not valid: {why}."
