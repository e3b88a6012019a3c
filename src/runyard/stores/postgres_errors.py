"""What PostgreSQL says, as errors of the domain, and which of it is worth trying again."""

from __future__ import annotations

import psycopg

from runyard.domain import errors

# Two servers made the same row at once: the second finds it there when it tries again.
_MADE_MEANWHILE = frozenset(
    {
        "uq_shapes_key",
        "pk_idempotency_keys",
        "pk_nodes",
        "pk_flags",
        "pk_fenced_gpus",
        "pk_leases",
        "uq_alerts_key_not_closed",
    }
)
_TAKEN = frozenset(
    {"pk_grants", "pk_attempts", "uq_attempts_job_id_number", "pk_idempotency_keys"}
)
_SHAPE_PRUNED = "fk_training_jobs_shape_id"


def worth_retrying(error: BaseException) -> bool:
    """The transaction is gone, and the same work may well succeed in a new one."""
    if isinstance(error, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected):
        return True
    if isinstance(error, psycopg.errors.UniqueViolation):
        return error.diag.constraint_name in _MADE_MEANWHILE
    return isinstance(error, psycopg.errors.ForeignKeyViolation) and (
        error.diag.constraint_name == _SHAPE_PRUNED
    )


def domain_error(error: psycopg.Error) -> errors.RunyardError:
    if isinstance(error, psycopg.errors.DiskFull):
        return errors.DiskFull("The disk of the database is full. Nothing was accepted.")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return errors.StoreReadOnly("The database takes no writes.")
    if isinstance(error, psycopg.errors.UniqueViolation):
        name = error.diag.constraint_name
        if name in _TAKEN or name in _MADE_MEANWHILE:
            return errors.StaleWrite()
        return errors.Conflict(f"There is one like it already ({name}).")
    if isinstance(error, psycopg.errors.ForeignKeyViolation):
        return errors.BadRequest("It refers to something that does not exist.")
    if isinstance(error, psycopg.DataError):
        return errors.BadRequest(f"This cannot be stored: {_first_line(error)}.")
    return errors.Unavailable(f"The database cannot be used right now: {_first_line(error)}.")


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
