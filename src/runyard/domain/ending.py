"""What an end means for the attempt and its job, judged against the job as it is by then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from signal import Signals
from typing import Any

from runyard.domain import reasons
from runyard.domain.reasons import Reason
from runyard.domain.states import AttemptEnd, JobStatus

# Causes of an end record
NEVER_STARTED = "never_started"
GPU_LOCKED = "gpu_locked"  # another server took the GPU between our look and our start
PORT_TAKEN = "port_taken"  # somebody uses a port that was granted, seen right before the start
EXEC_FAILED = "exec_failed"
CWD_MISSING = "cwd_missing"
ISOLATION_UNAVAILABLE = "isolation_unavailable"  # strict was asked for, the machine forbids it
GPU_RUNTIME_MISSING = "gpu_runtime_missing"  # its engine cannot give a container GPUs
START_FAILED = "start_failed"  # its folders or its log could not be made
SERVICE_FAILED = "service_failed"  # a service did not get ready, or ended in failure
TIMEOUT = "timeout"
RANK_LAGGED = "rank_lagged"  # other ranks had ended well long before
# What the cause alone decides; the record's details are the reason's parameters
_DECIDED = {
    NEVER_STARTED: (AttemptEnd.NEVER_STARTED, reasons.NEVER_STARTED),
    GPU_LOCKED: (AttemptEnd.NEVER_STARTED, reasons.GPU_LOCKED),
    PORT_TAKEN: (AttemptEnd.NEVER_STARTED, reasons.PORT_TAKEN),
    EXEC_FAILED: (AttemptEnd.FAILED, reasons.EXEC_FAILED),
    START_FAILED: (AttemptEnd.FAILED, reasons.START_FAILED),
    CWD_MISSING: (AttemptEnd.FAILED, reasons.CWD_MISSING),
    ISOLATION_UNAVAILABLE: (AttemptEnd.FAILED, reasons.ISOLATION_UNAVAILABLE),
    GPU_RUNTIME_MISSING: (AttemptEnd.FAILED, reasons.GPU_RUNTIME_MISSING),
    SERVICE_FAILED: (AttemptEnd.FAILED, reasons.SERVICE_FAILED),
    TIMEOUT: (AttemptEnd.TIMED_OUT, reasons.TIMED_OUT),
    RANK_LAGGED: (AttemptEnd.FAILED, reasons.RANK_LAGGED),
}
# Ends of the job's own, of which the record knows more than code and signal
_EXPLAINED = {
    "oom": reasons.OOM,
    "oom_child": reasons.OOM_CHILD,
    "oom_soft": reasons.OOM_SOFT,
    "killed_externally": reasons.KILLED_EXTERNALLY,
    "crashed": reasons.CRASHED,
}
CANCELLED = frozenset({"cancelled", "cancelled_before_start"})
HOST_LOST = frozenset({"host_restarted", "lost_host_restart"})
LOST = frozenset({"supervisor_lost", "lost"}) | HOST_LOST

# Causes of a stop
ASKED_FOR = frozenset({"user", "shutdown", "lease"})
SUPERVISOR_TERM = "supervisor_term"  # somebody ended the supervisor: trouble of the host, not ours


@dataclass(frozen=True, slots=True)
class Verdict:
    """`to` failed is provisional: retrying.decide says whether it becomes retrying. `through` is
    what must be written before `to` (besides a missed `running`) so that every move is legal."""

    end: AttemptEnd
    to: JobStatus  # completed, cancelled or failed
    reason: Reason | None
    through: tuple[JobStatus, ...] = ()


def judge(
    status: JobStatus,
    *,
    code: int | None,
    signal: int | None,
    cause: str,
    stop_cause: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Verdict:
    """Judge an end record against the job's status; `stop_cause` is that of the stop under way."""
    if status is JobStatus.CANCELLING:  # also after exit 0: the person was told it is cancelled
        return Verdict(AttemptEnd.CANCELLED, JobStatus.CANCELLED, _cancel_reason(stop_cause))
    asked_for = stop_cause is None or stop_cause in ASKED_FOR
    if cause in CANCELLED and asked_for:
        reason = _cancel_reason(stop_cause) or Reason(reasons.USER_CANCELLED)
        through = (JobStatus.CANCELLING,)
        return Verdict(AttemptEnd.CANCELLED, JobStatus.CANCELLED, reason, through)
    known = {name: value for name, value in (detail or {}).items() if name != "ranks"}
    end, why = _uncancelled(code, signal, cause, stop_cause, known)
    to = JobStatus.COMPLETED if end is AttemptEnd.COMPLETED else JobStatus.FAILED
    return Verdict(end, to, why)


def _cancel_reason(stop_cause: str | None) -> Reason | None:
    """None leaves the reason that was written with `cancelling`, which knows who asked."""
    return Reason(reasons.SHUTDOWN) if stop_cause == "shutdown" else None


def _uncancelled(
    code: int | None,
    signal: int | None,
    cause: str,
    stop_cause: str | None,
    detail: Mapping[str, Any],
) -> tuple[AttemptEnd, Reason | None]:
    if cause in _DECIDED:
        end, why = _DECIDED[cause]
        return end, Reason(why, dict(detail))
    if cause in _EXPLAINED:
        return AttemptEnd.FAILED, Reason(
            _EXPLAINED[cause], {**detail, **_status_params(code, signal)}
        )
    if cause in CANCELLED:  # a stop nobody asked for: no success, whatever the exit code
        end = AttemptEnd.LOST if stop_cause == SUPERVISOR_TERM else AttemptEnd.FAILED
        return end, Reason(reasons.STOPPING, {"cause": stop_cause})
    if cause in HOST_LOST:
        return AttemptEnd.LOST, Reason(reasons.HOST_RESTARTED)
    if cause in LOST or (code is None and signal is None):
        return AttemptEnd.LOST, Reason(reasons.SUPERVISOR_LOST)
    if signal is not None:
        return AttemptEnd.FAILED, Reason(
            reasons.SIGNAL, {**_signal_params(signal), **_first(detail)}
        )
    if code == 0:
        return AttemptEnd.COMPLETED, None
    params = {**_exit_params(code), **_first(detail)}
    if detail.get("forks_refused"):
        params["forks_refused"] = detail["forks_refused"]
    return AttemptEnd.FAILED, Reason(reasons.EXIT_CODE, params)


def _first(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Of several ranks the one that failed first, whose end this is."""
    return {"rank": detail["rank"]} if detail.get("rank") is not None else {}


def _status_params(code: int | None, signal: int | None) -> dict[str, Any]:
    return _exit_params(code) if signal is None else _signal_params(signal)


def _signal_params(number: int) -> dict[str, Any]:
    return {"signal": number, "name": signal_name(number)}


def _exit_params(code: int | None) -> dict[str, Any]:
    # a shell reports a signal one level down as 128 + its number: show both
    below = signal_name(code - 128) if code is not None and code > 128 else None
    return {"code": code} if below is None else {"code": code, "shell_signal": below}


def signal_name(number: int) -> str | None:
    try:
        return Signals(number).name
    except ValueError:
        return None
