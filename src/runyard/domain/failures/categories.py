"""The names of failures: fine categories, and the coarse types that people and the API use."""

from __future__ import annotations

from enum import StrEnum


class FailureType(StrEnum):
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"
    MODEL_LOADING_ERROR = "model_loading_error"
    CUDA_ERROR = "cuda_error"
    TRAINING_DIVERGENCE = "training_divergence"
    CHECKPOINT_CORRUPTION = "checkpoint_corruption"
    COMMUNICATION = "communication"
    ENVIRONMENT = "environment"
    CODE = "code"
    DATA = "data"
    RESOURCE_LIMIT = "resource_limit"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"
    KILLED_EXTERNALLY = "killed_externally"
    CRASH = "crash"
    UNKNOWN = "unknown"


class Category(StrEnum):
    GPU_OOM = "gpu_oom"
    HOST_OOM = "host_oom"
    SHM = "shm"
    FD_LIMIT = "fd_limit"
    RLIMIT = "rlimit"  # a limit of CPU time or file size set outside
    CUDA_FAULT = "cuda_fault"
    GPU_HW = "gpu_hw"
    GPU_BUSY = "gpu_busy"
    HOST_DRIVER = "host_driver"
    COMM_HANG = "comm_hang"
    COMM_NET = "comm_net"
    RENDEZVOUS = "rendezvous"
    PORT_IN_USE = "port_in_use"
    STALL = "stall"  # alive without progress, and no collective to blame
    NAN = "nan"
    DISK_FULL = "disk_full"
    STORAGE = "storage"
    CKPT_CORRUPT = "ckpt_corrupt"
    CKPT_MISMATCH = "ckpt_mismatch"
    CKPT_MISSING = "ckpt_missing"
    PARTIAL_DOWNLOAD = "partial_download"
    NETWORK = "network"
    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    MODEL_ID = "model_id"
    MODEL_FILES = "model_files"
    IMPORT = "import"
    ENV = "env"
    CODE = "code"
    CODE_DATA = "code_data"  # an index or label out of range, found on the GPU
    CONFIG = "config"
    PATH = "path"
    DATA = "data"
    SEGFAULT = "segfault"
    CRASH = "crash"
    SERVICE = "service"
    PREEMPTED = "preempted"
    SERVER_RESTART = "server_restart"
    TIME_LIMIT = "time_limit"  # of a cluster around us
    TIMEOUT = "timeout"  # the job's own timeout_s
    RULE = "rule"
    EXTERNAL_STOP = "external_stop"
    UNKNOWN_KILL = "unknown_kill"
    UNKNOWN = "unknown"


_TYPES = {
    FailureType.OUT_OF_MEMORY: (Category.GPU_OOM, Category.HOST_OOM),
    FailureType.DISK_FULL: (Category.DISK_FULL,),
    FailureType.MODEL_LOADING_ERROR: (
        Category.MODEL_ID,
        Category.MODEL_FILES,
        Category.AUTH,
        Category.NETWORK,
        Category.RATE_LIMIT,
        Category.PARTIAL_DOWNLOAD,
    ),
    FailureType.CUDA_ERROR: (Category.CUDA_FAULT, Category.GPU_HW, Category.GPU_BUSY),
    FailureType.TRAINING_DIVERGENCE: (Category.NAN,),
    FailureType.CHECKPOINT_CORRUPTION: (
        Category.CKPT_CORRUPT,
        Category.CKPT_MISMATCH,
        Category.CKPT_MISSING,
    ),
    FailureType.COMMUNICATION: (
        Category.COMM_HANG,
        Category.COMM_NET,
        Category.RENDEZVOUS,
        Category.PORT_IN_USE,
    ),
    FailureType.ENVIRONMENT: (
        Category.IMPORT,
        Category.ENV,
        Category.HOST_DRIVER,
        Category.PATH,
        Category.STORAGE,
        Category.SERVICE,
    ),
    FailureType.CODE: (Category.CODE, Category.CONFIG),
    FailureType.DATA: (Category.DATA, Category.CODE_DATA),
    FailureType.RESOURCE_LIMIT: (Category.SHM, Category.FD_LIMIT, Category.RLIMIT),
    FailureType.PREEMPTED: (Category.PREEMPTED, Category.SERVER_RESTART),
    FailureType.TIMEOUT: (Category.TIME_LIMIT, Category.TIMEOUT, Category.STALL),
    FailureType.KILLED_EXTERNALLY: (
        Category.EXTERNAL_STOP,
        Category.UNKNOWN_KILL,
        Category.RULE,
    ),
    FailureType.CRASH: (Category.SEGFAULT, Category.CRASH),
    FailureType.UNKNOWN: (Category.UNKNOWN,),
}
_TYPE_OF = {category: kind for kind, categories in _TYPES.items() for category in categories}
_WHILE_LOADING = frozenset({Category.NETWORK, Category.RATE_LIMIT})


def failure_type(category: Category, *, trained: bool = False) -> FailureType:
    """`trained`: steps were made before it failed, so that nothing was being loaded any more."""
    if trained and category in _WHILE_LOADING:
        return FailureType.COMMUNICATION
    return _TYPE_OF[category]
