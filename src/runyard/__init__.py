"""Runyard runs machine-learning training jobs. Public names load when first used."""

TYPE_CHECKING = False  # type checkers take it for true; importing typing costs too much here

if TYPE_CHECKING:
    from runyard.embed.queue_manager import TrainingQueueManager
    from runyard.embed.training_monitor import TrainingMonitor
    from runyard.embed.training_recovery import TrainingRecoveryService
    from runyard.sdk.client import Client
    from runyard.sdk.errors import (
        AlreadyEnded,
        BadRequest,
        Conflict,
        DataDirInUse,
        Forbidden,
        InvalidJob,
        JobNotFound,
        LocalServiceFailed,
        NotEnded,
        NotFound,
        RunyardError,
        ServerUnreachable,
        StartRefused,
        Unauthenticated,
        Unavailable,
        UnknownField,
        WaitTimeout,
    )
    from runyard.sdk.job import Job
    from runyard.sdk.services import LocalService
    from runyard.sdk.session import Session

__version__ = "0.1.0"

__all__ = [
    "AlreadyEnded",
    "BadRequest",
    "Client",
    "Conflict",
    "DataDirInUse",
    "Forbidden",
    "InvalidJob",
    "Job",
    "JobNotFound",
    "LocalService",
    "LocalServiceFailed",
    "NotEnded",
    "NotFound",
    "RunyardError",
    "ServerUnreachable",
    "Session",
    "StartRefused",
    "TrainingMonitor",
    "TrainingQueueManager",
    "TrainingRecoveryService",
    "Unauthenticated",
    "Unavailable",
    "UnknownField",
    "WaitTimeout",
    "__version__",
    "report",
]

_HOMES = {
    "Client": "runyard.sdk.client",
    "Job": "runyard.sdk.job",
    "LocalService": "runyard.sdk.services",
    "Session": "runyard.sdk.session",
    "TrainingMonitor": "runyard.embed.training_monitor",
    "TrainingQueueManager": "runyard.embed.queue_manager",
    "TrainingRecoveryService": "runyard.embed.training_recovery",
}
_MODULES = ("report",)  # public as they are


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'runyard' has no attribute {name!r}")
    # Every supervisor and every CLI call imports this file, so it must cost nothing.
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"runyard.{name}")
    value: object = getattr(importlib.import_module(_HOMES.get(name, "runyard.sdk.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
