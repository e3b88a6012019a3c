"""What the end itself proves, before and after any log is read."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from runyard.domain import ending
from runyard.domain.failures.categories import Category
from runyard.domain.failures.evidence import Evidence

INTERRUPT = 2
FILE_SIZE_EXCEEDED = 25
_HANGUP, _INTERRUPT, _ILL, _ABORT, _BUS, _FPE, _KILL = 1, INTERRUPT, 4, 6, 7, 8, 9
_SEGV, _TERM, _XCPU, _XFSZ = 11, 15, 24, FILE_SIZE_EXCEEDED
_SIGNALS = {
    _HANGUP: Category.UNKNOWN_KILL,
    _INTERRUPT: Category.EXTERNAL_STOP,
    _ILL: Category.ENV,  # built for another processor
    _ABORT: Category.CRASH,
    _BUS: Category.SHM,
    _FPE: Category.CODE,
    _KILL: Category.UNKNOWN_KILL,
    _SEGV: Category.SEGFAULT,
    _TERM: Category.UNKNOWN_KILL,
    _XCPU: Category.RLIMIT,
    _XFSZ: Category.RLIMIT,
}
_NAMES = {"SIGKILL": _KILL, "SIGTERM": _TERM, "SIGSEGV": _SEGV, "SIGABRT": _ABORT, "SIGBUS": _BUS}
_USAGE, _DO_NOT_REQUEUE, _NOT_EXECUTABLE, _NOT_FOUND = 2, 93, 126, 127
_OOM = frozenset({"oom", "oom_child", "oom_soft"})
_STARTS = frozenset({ending.EXEC_FAILED, ending.START_FAILED})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PATHS = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR})
_STALL, _RULE, _NAN = "stall", "rule", "nan"
# torchrun and DeepSpeed tell how the first process ended that failed.
_CHILD = re.compile(
    r"(?:exitcode {0,3}: {0,2}|exits with return code = )(-?\d{1,5})"
    r"|died with <Signals\.SIG[A-Z0-9]{1,10}: (\d{1,3})>"
    r"|terminated with signal (SIG[A-Z]{2,5})\b"
)


@dataclass(frozen=True, slots=True)
class Proven:
    category: Category
    confidence: float
    facts: dict[str, Any] = field(default_factory=dict)
    code: str | None = None  # of the explanation, where it is not the category


def before_logs(evidence: Evidence) -> Proven | None:
    """Ends whose cause our own records know; no line of a log can know better."""
    cause, detail = evidence.cause, evidence.detail
    if cause == ending.CWD_MISSING:
        return Proven(Category.PATH, 1.0, _picked(detail, "path"), "cwd_missing")
    if cause in (ending.ISOLATION_UNAVAILABLE, ending.GPU_RUNTIME_MISSING):
        return Proven(Category.ENV, 1.0, _picked(detail, "path", "message"), cause)
    if cause in (ending.NEVER_STARTED, ending.GPU_LOCKED):
        return Proven(Category.SERVER_RESTART, 1.0, {}, cause)
    if cause == ending.PORT_TAKEN:
        return Proven(Category.SERVER_RESTART, 1.0, _picked(detail, "port", "node"), cause)
    if cause in ending.LOST:
        return Proven(Category.SERVER_RESTART, 1.0, {}, _lost_code(cause))
    if cause in _STARTS:
        return _not_startable(evidence)
    if cause == ending.SERVICE_FAILED:
        return _service(evidence)
    if cause in ending.CANCELLED and evidence.stop_cause in ending.ASKED_FOR:
        return Proven(Category.EXTERNAL_STOP, 1.0, {"stop_cause": evidence.stop_cause})
    if evidence.stop_cause == ending.SUPERVISOR_TERM:
        return Proven(Category.SERVER_RESTART, 1.0, {}, "supervisor_term")
    if cause in _OOM or (evidence.oom_kills and evidence.exit_code != 0):
        known = _picked(detail, "memory_peak_mb", "limit_mb", "used_mb", "oom_kills")
        known.setdefault("oom_kills", evidence.oom_kills)
        host = evidence.host
        if host.memory_limit_mb is not None:
            known.setdefault("limit_mb", host.memory_limit_mb)
        if host.memory_peak_mb is not None:
            known.setdefault("memory_peak_mb", host.memory_peak_mb)
        code = "host_oom_confirmed" if cause != "oom_soft" else "host_oom_above_limit"
        return Proven(Category.HOST_OOM, 1.0, known, code)
    return None


def stopped_by_us(evidence: Evidence) -> Proven | None:
    """Stops nobody asked for; a surer cause in the log comes before these."""
    if evidence.cause == ending.TIMEOUT:
        return Proven(Category.TIMEOUT, 1.0, _picked(evidence.detail, "limit_s"))
    if evidence.stop_cause == _STALL:
        distributed = evidence.world_size > 1
        return Proven(Category.COMM_HANG if distributed else Category.STALL, 0.9)
    if evidence.stop_cause == _NAN:
        return Proven(Category.NAN, 0.95)
    if evidence.cause == ending.RANK_LAGGED:
        return Proven(Category.COMM_HANG, 0.9, _picked(evidence.detail, "limit_s"), "rank_lagged")
    if evidence.stop_cause == _RULE:
        return Proven(Category.RULE, 1.0, {"rule": evidence.rule})
    return None


def after_logs(evidence: Evidence, signal: int | None) -> Proven:
    """What exit code and signal say when no line told more."""
    number = signal
    if number is not None:
        category = _SIGNALS.get(number, Category.UNKNOWN)
        confidence = 0.9 if category in (Category.SEGFAULT, Category.UNKNOWN_KILL) else 0.6
        return Proven(category, confidence, {"signal": number})
    code = evidence.exit_code
    if code in (_NOT_EXECUTABLE, _NOT_FOUND):
        return Proven(Category.CONFIG, 0.85, {"exit_code": code})
    if code == _USAGE:
        return Proven(Category.CONFIG, 0.6, {"exit_code": code})
    if code == _DO_NOT_REQUEUE:
        return Proven(Category.EXTERNAL_STOP, 0.6, {"exit_code": code}, "do_not_requeue")
    return Proven(Category.UNKNOWN, 0.3, {} if code is None else {"exit_code": code})


def ended_by(evidence: Evidence, said: Iterable[str] = ()) -> int | None:
    """The signal that ended it, or the process that its launcher (by what it `said`) saw end."""
    if evidence.signal is not None:
        return evidence.signal
    own = _signal_in(evidence.exit_code)
    if own is not None or evidence.exit_code is None:
        return own
    for line in said:
        found = _CHILD.search(line)
        if found is not None:
            told, number, name = found.groups()
            if name:
                return _NAMES.get(name)
            return _signal_in(int(told)) if told else int(number)
    return None


def _signal_in(code: int | None) -> int | None:
    """As shells and Python tell a signal in an exit code."""
    if code is None:
        return None
    number = -code if code < 0 else code - 128
    return number if number in _SIGNALS else None


def _not_startable(evidence: Evidence) -> Proven:
    number = evidence.detail.get("errno")
    known = _picked(evidence.detail, "path", "message", "errno")
    if number in _FULL:
        return Proven(Category.DISK_FULL, 1.0, known)
    if evidence.cause == ending.START_FAILED and number in _PATHS:
        return Proven(Category.PATH, 1.0, known, "start_failed")
    if evidence.cause == ending.EXEC_FAILED:
        return Proven(Category.CONFIG, 1.0, known, "exec_failed")
    code = "container_failed" if evidence.detail.get("step") == "container" else "start_failed"
    return Proven(Category.UNKNOWN, 0.6, known, code)


def _service(evidence: Evidence) -> Proven:
    known = _picked(evidence.detail, "service", "code", "port", "line", "exit_code", "message")
    code = evidence.detail.get("code")
    if code == "port_in_use":
        return Proven(Category.PORT_IN_USE, 1.0, known, "service_failed")
    if code == "exec_failed":
        return Proven(Category.CONFIG, 1.0, known, "service_failed")
    return Proven(Category.SERVICE, 1.0, known, "service_failed")


def _lost_code(cause: str) -> str:
    return "host_restarted" if cause in ending.HOST_LOST else "supervisor_lost"


def _picked(detail: Any, *names: str) -> dict[str, Any]:
    return {name: detail[name] for name in names if detail.get(name) is not None}
