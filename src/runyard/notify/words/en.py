"""English."""

from __future__ import annotations

TITLES = {
    "completed": "Job {name} completed",
    "failed": "Job {name} failed",
    "cancelled": "Job {name} was cancelled",
    "repaired": "Job {name} was repaired and has completed",
    "alert": "Alert ({level}): {what}",
    "alert_of_job": "Alert ({level}) for job {name}: {what}",
    "test": "Runyard can reach you",
}

LINES = {
    "job": "Job: {job_id}",
    "owner": "Owner: {owner}",
    "reason": "Reason: {reason}",
    "exit_code": "Exit code: {exit_code}",
    "took": "Ran for: {took}",
    "node": "Node: {node_id}",
    "params": "Details: {params}",
    "url": "More: {url}",
    "test": "This is a test asked for by {asked_by}. Nothing has happened.",
}

# Codes that are not here are shown as they are, with their parameters.
REASONS = {
    "exit_code": "it ended with exit code {code}",
    "signal": "it was ended by {name}",
    "crashed": "it crashed with {name}",
    "killed_externally": "somebody else killed it with {name}",
    "oom": "out of memory: the kernel killed it",
    "oom_child": "out of memory: the kernel killed a process of it",
    "oom_soft": "it used {used_mb} MiB of memory, its limit is {limit_mb} MiB",
    "timed_out": "it ran longer than {limit_s}",
    "user_cancelled": "cancelled by {by}",
    "shutdown": "the server was shut down",
    "lease_lost": "its client is gone",
    "dependency_failed": "{job}, which it depends on, is {status}",
    "exec_failed": "it could not be started: {path}: {message}",
    "cwd_missing": "there is no working directory {path}",
    "service_failed": "its service {service} failed",
    "rank_lagged": "rank {rank} did not end within {limit_s} of the first that did",
    "supervisor_lost": "its supervisor was killed; how it ended is not known",
    "host_restarted": "the machine restarted",
    "retries_used_up": "{max_retries} retries failed as well; the last time {last}",
}

ALERTS = {
    "service_unhealthy": "service {service} does not answer any more",
    "cannot_be_killed": "processes cannot be killed; what the job holds stays reserved",
    "cancel_stale": "still cancelling after {seconds}",
    "gpu_memory_held": "GPU memory is not back after the job's end",
    "stalled_training": "no progress for {seconds}",
    "memory_leak": "{kind} memory grows by {mb_per_hour} MB an hour",
    "completed_with_nan": "completed, but its loss is NaN since step {bad_step}",
    "not_finite": "{metric} is {value} at step {step}",
    "loss_spike": "{metric} jumped to {value}",
    "loss_divergence": "{metric} rises: {value}",
    "loss_plateau": "{metric} has not fallen for {seconds}",
    "idle_gpu": "the GPU is not used",
    "slow_down": "slower than before",
    "disk_full": "{free_gb} GB are left on the disk",
    "gpu_trouble": "GPU {gpu}: {kind}",
    "rule": "rule {rule}: {expression}",
}
