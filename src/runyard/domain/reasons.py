"""Why something is as it is: a stable code with parameters, worded only in the UI and the CLI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    params: Mapping[str, Any] = field(default_factory=dict)


# Waiting
HELD = "held"
DISPATCH_PAUSED = "dispatch_paused"
DEPENDENCY = "dependency"  # params: jobs [{job, on, status}]
RETRY_DELAY = "retry_delay"  # params: until (epoch seconds), attempt, cause
WAITING_FOR_SPACE = (
    "waiting_for_space"  # params: path, free_bytes, wanted_bytes: its disk was full
)
MAX_CONCURRENT = "max_concurrent"  # params: limit, running
ARRAY_LIMIT = "array_limit"  # params: limit, running
GATE = "gate"  # params: gate (cpu, memory, disk), value, limit
NOT_ENOUGH = "not_enough"  # params: resource (cpu, memory, gpu, port), wanted, free, total
GPU_TYPE_ABSENT = "gpu_type_absent"  # params: wanted, present
GPUS_HELD_ELSEWHERE = "gpus_held_elsewhere"  # params: gpus [{index, holder or server}]
GPUS_AVOIDED = (
    "gpus_avoided"  # params: gpus, fenced (indexes), until: its last attempt failed there
)
NEVER_FITS = "never_fits"  # params: resource, wanted, largest; of nodes also each
# params: wanted, free (that can take a part of it now), total (large enough), each (cpu, memory,
# gpu, port, gpu_type: what every node must have)
NOT_ENOUGH_NODES = "not_enough_nodes"
EXECUTOR_UNAVAILABLE = "executor_unavailable"  # params: executor, why, at (both if known)
RESERVED = "reserved"  # params: job: a longer-waiting job has first call on what is free
NODE_DRAINED = "node_drained"
NO_NODE = "no_node"
PREPARING = "preparing"  # params: stage, done_bytes, total_bytes: not ready to be placed yet
# params: image, bytes_done, bytes_total, layers_done, layers_total; until, last: tried again then
PULLING_IMAGE = "pulling_image"
# params: image; while it is pulled also bytes_done, bytes_total, layers_done, layers_total
STARTING_CONTAINER = "starting_container"
STARTING_SERVICES = "starting_services"  # params: services: main starts when all are ready
QUEUED = "queued"  # accepted, no pass has looked at it yet

# Ended or ending
USER_CANCELLED = "user_cancelled"  # params: by
SHUTDOWN = "shutdown"
DEPENDENCY_FAILED = "dependency_failed"  # params: job, status
NODE_UNREACHABLE = "node_unreachable"
LEASE_LOST = "lease_lost"  # params: lease_s: its client did not renew the lease
# What a cancelling job waits for; params of each: by, cause (who asked and why)
WAITING_FOR_STEP = "waiting_for_step"  # params: until, grace_s: it has been asked to end
WAITING_FOR_PROCESSES = "waiting_for_processes"  # the grace is over, the rest is being killed
WAITING_FOR_GPU_MEMORY = "waiting_for_gpu_memory"  # params: gpus: processes gone, memory not back
WAITING_FOR_SERVICES = "waiting_for_services"  # params: services, until, grace_s: main never ran
WAITING_FOR_PREPARATION = "waiting_for_preparation"  # params: stage: a download or check ends
PREPARATION_FAILED = "preparation_failed"  # params: stage, code, and what the code needs
# params: service, code (exited, not_ready, port_in_use, exec_failed, restarts_used_up), exit_code,
# signal, line (the last of its log), and what the code needs: ready_timeout_s, said, port, message
SERVICE_FAILED = "service_failed"
RANK_LAGGED = "rank_lagged"  # params: rank, limit_s; others had ended well so long before
STOPPING = "stopping"  # params: cause
COMPLETED_WITH_NAN = "completed_with_nan"  # params: bad_step, step: its last loss was no number
EXIT_CODE = "exit_code"  # params: code
SIGNAL = "signal"  # params: signal, name
OOM = "oom"  # params: memory_peak_mb, limit_mb (if it had one), oom_kills, signal, name
OOM_CHILD = "oom_child"  # a process of it was killed for memory; params as oom, or code
OOM_SOFT = "oom_soft"  # params: limit_mb, used_mb: ended by us above its limit
KILLED_EXTERNALLY = "killed_externally"  # params: signal, name: nobody here sent it
CRASHED = "crashed"  # params: signal, name
EXEC_FAILED = "exec_failed"  # params: errno, path, message
CWD_MISSING = "cwd_missing"  # params: path
ISOLATION_UNAVAILABLE = "isolation_unavailable"  # params: path (what is missing), errno, message
GPU_RUNTIME_MISSING = "gpu_runtime_missing"  # params: path (its image), message (the engine's)
TIMED_OUT = "timed_out"  # params: limit_s
SUPERVISOR_LOST = "supervisor_lost"
HOST_RESTARTED = "host_restarted"
NEVER_STARTED = "never_started"
START_FAILED = "start_failed"  # params: step, path, errno, message
STUCK = "stuck"  # params: processes [{pid, state, name, where}], by: what cannot be killed
GPU_LOCKED = "gpu_locked"  # params: path, owner: another server on this machine has it
# params: port, node (of the first), refused [{slice, node, port}]: granted, in use by others
PORT_TAKEN = "port_taken"
RETRIES_USED_UP = "retries_used_up"  # params: max_retries, last (a reason)
