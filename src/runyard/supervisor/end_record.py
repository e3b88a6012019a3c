"""Collecting what the end of an attempt has to say, and writing it: main_exit, then exit."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runyard.supervisor import (
    causes,
    journal,
    limits,
    process_table,
    protocol,
    rank_records,
    service_records,
    shared_memory,
    stop_request,
    stopping,
    temporary,
)

if TYPE_CHECKING:
    from runyard.supervisor.attempt import Attempt
    from runyard.supervisor.attempt_group import Group

_RETRY_S = 0.25
_LIMITS = {"timeout": "timeout_s", "rank_lagged": "finish_skew_s"}
_CAUSES = {
    "exec": "exec_failed",
    "cwd": "cwd_missing",
    "isolation": "isolation_unavailable",
}


class EndRecord:
    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.shared_memory: shared_memory.Mapped = {}
        self._signals: list[dict[str, Any]] = []
        self._mains: dict[int, dict[str, Any]] = {}  # by rank; that of one process is 0
        self._reaped = 0
        self._usage = [0.0, 0.0, 0]  # user seconds, system seconds, peak KiB
        self._stuck: list[dict[str, object]] = []

    def signalled(self, name: str, target: str) -> None:
        self._signals.append({"signal": name, "at": time.time(), "target": target})

    def reap(self, pid: int) -> None:
        _, _, usage = os.wait4(pid, 0)
        self._reaped += 1
        self._usage[0] += usage.ru_utime
        self._usage[1] += usage.ru_stime
        self._usage[2] = max(self._usage[2], usage.ru_maxrss)

    def record_main(self, info: os.waitid_result) -> None:
        """Durable before the caller reaps it."""
        attempt = self.attempt
        rank = attempt.mains[info.si_pid]
        if rank not in self._mains:
            self._mains[rank] = {
                **({} if attempt.gang is None else {"rank": rank}),
                **status_of(info),
                "killed_externally": causes.killed_externally(status_of(info), self._signals),
                # Counted from the start, so that a clock set back cannot end it before it began.
                "ended_at": _end_time(attempt),
                "stop": attempt.stop.request if attempt.stop is not None else None,
            }
        append_main(attempt.journal, self._mains[rank])
        attempt.reached("main_exit")

    def report_stuck(self, pids: list[int]) -> None:
        """Name what does not die, once for every different list."""
        stuck = [process_table.describe(pid) for pid in pids]
        if {p["pid"] for p in stuck} == {p["pid"] for p in self._stuck}:
            return
        self._stuck = stuck
        with contextlib.suppress(OSError):
            self.attempt.journal.append("stuck", {"processes": stuck})
        self.attempt.host.news.send("stuck", self.attempt.attempt_id, processes=stuck)

    def write(self) -> None:
        """The tree is empty: clean up what is left in files, then write the exit record."""
        attempt = self.attempt
        main = self._deciding()
        stop = attempt.stop if attempt.stop is not None and main.get("stop") else None
        removed_bytes = shared_memory.remove(self.shared_memory) if self.shared_memory else 0
        temporary_removed = temporary.remove(f"{attempt.folder}/{protocol.TEMPORARY}")
        oom_kills = attempt.group.oom_kills() if attempt.group is not None else 0
        cause = stop.exit_cause if stop is not None else causes.of_main(main, oom_kills)
        limited = attempt.limits.of_end(attempt.group, cause)
        now = time.time()
        self._append(
            {
                "code": main.get("code"),
                "signal": main.get("signal"),
                "core": main.get("core", False),
                "cause": cause,
                **self._limit(stop),
                **self._services(),
                **self._ranks(main),
                **limited,
                **_group_removed(attempt.group),
                "by": "supervisor",
                "proof": "echild" if attempt.host.reaps_orphans else "scan",
                "started_at": attempt.started_at,
                "ended_at": main.get("ended_at", now),
                "signals": self._signals,
                "processes_ended": self._reaped,
                "stuck": [],
                "was_stuck": self._stuck,
                "shm_bytes": removed_bytes,
                "temp_removed": temporary_removed,
                "rusage": {
                    "utime_s": round(self._usage[0], 6),
                    "stime_s": round(self._usage[1], 6),
                    "maxrss_kb": self._usage[2],
                },
                "killed_externally": main.get("killed_externally", False),
                "log_bytes": attempt.log_bytes(),
                "stop": stop.request if stop is not None else None,
                "seconds": _seconds(stop.request if stop else None, main, now),
            }
        )

    def write_unstarted(self, cause: str, detail: dict[str, Any]) -> None:
        """Main never ran; nothing of the user's did, but for services, which have ended."""
        stop = self.attempt.stop
        removed_bytes = shared_memory.remove(self.shared_memory) if self.shared_memory else 0
        temporary_removed = temporary.remove(f"{self.attempt.folder}/{protocol.TEMPORARY}")
        now = time.time()
        _group_removed(self.attempt.group)
        self._append(
            {
                "code": None,
                "signal": None,
                "cause": cause,
                **detail,
                **self._services(),
                "by": "supervisor",
                "proof": "echild" if self.attempt.host.reaps_orphans else "scan",
                "started_at": None,
                "ended_at": now,
                "signals": self._signals,
                "processes_ended": self._reaped,
                "stuck": [],
                "was_stuck": self._stuck,
                "shm_bytes": removed_bytes,
                "temp_removed": temporary_removed,
                "log_bytes": 0,
                "stop": stop.request if stop is not None else None,
                "seconds": max(0.0, now - stop.request["requested_at"]) if stop else None,
            }
        )

    def _deciding(self) -> dict[str, Any]:
        """The end of main; of several ranks that of the first which failed."""
        gang = self.attempt.gang
        rank = 0 if gang is None else gang.deciding()
        return {} if rank is None else self._mains.get(rank, {})

    def _ranks(self, main: dict[str, Any]) -> dict[str, Any]:
        if self.attempt.gang is None:
            return {}
        return rank_records.told(self.attempt.spec, list(self._mains.values()), main or None)

    def _services(self) -> dict[str, Any]:
        services = self.attempt.services
        if services is None:
            return {}
        told: dict[str, Any] = {"services": services.told()}
        return told if services.failure is None else {**told, "service_failure": services.failure}

    def _limit(self, stop: stopping.Stopping | None) -> dict[str, Any]:
        field = _LIMITS.get(stop.cause) if stop is not None else None
        if field is None or field not in self.attempt.spec:
            return {}
        return {"limit_s": self.attempt.spec[field]}

    def _append(self, fields: dict[str, Any]) -> None:
        attempt = self.attempt
        while True:
            try:
                attempt.journal.append("exit", fields, once=True, sync=True)
                break
            except OSError:
                # A full or failing disk: the supervisor stays until the end is on record.
                attempt.beat(time.monotonic())
                time.sleep(_RETRY_S)
        attempt.reached("exit_record")
        record = attempt.journal.journal.exit
        attempt.host.news.send("ended", attempt.attempt_id, exit=record)


def outside(
    record: journal.Journal,
    stop: stop_request.Request | None,
    *,
    by: str,
    same_life: bool = True,
    group: Group | None = None,
) -> dict[str, Any]:
    """The exit record of an attempt that lost its supervisor, once nothing of it lives; without
    what `tidied` adds."""
    fields: dict[str, Any] = {
        "code": None,
        "signal": None,
        "core": False,
        "cause": "supervisor_lost" if same_life else "lost_host_restart",
        "by": by,
        "proof": "scan" if same_life else "boot",
        "started_at": record.job["started_at"] if record.job else None,
        "ended_at": time.time(),
        "signals": [],
        "processes_ended": 0,
        "stuck": [],
        "was_stuck": record.stuck["processes"] if record.stuck else [],
        "shm_bytes": 0,
        "stop": stop,
    }
    main = record.main_exit
    if record.first("service") is not None:
        fields.update(service_records.told(record))
    if record.first_process is None:
        fields["cause"] = "never_started"
    elif main is not None:
        fields.update({name: main.get(name) for name in ("code", "signal", "core", "ended_at")})
        fields["cause"] = _cause_of_main(main, group.oom_kills() if group is not None else 0)
    if record.spec is not None and record.spec.get("ranks"):
        first = None if fields["cause"] == "supervisor_lost" else main
        fields.update(rank_records.told(record.spec, rank_records.exits(record), first))
    if group is not None:
        fields.update(limits.Limits(record.spec or {}).of_end(group, fields["cause"]))
    fields["seconds"] = _seconds(stop, main, time.time())
    return fields


def tidied(folder: str, group: Group | None) -> dict[str, bool]:
    """Remove its temporary directory and its group; what became of them. Only when it is certain
    that no supervisor has the attempt."""
    removed = temporary.remove(f"{folder}/{protocol.TEMPORARY}")
    return {"temp_removed": removed, **_group_removed(group)}


def append_main(appender: journal.Appender, fields: dict[str, Any]) -> None:
    """The end of main, or of one rank: once for each."""
    rank = fields.get("rank")
    if rank is None:
        appender.append("main_exit", fields, once=True, sync=True)
        return
    appender.append(
        "main_exit",
        fields,
        sync=True,
        unless=lambda: rank_records.has_exit(appender.journal, rank),
    )


def killed(at: float | None) -> list[dict[str, Any]]:
    """The signals of whoever ends what a dead supervisor left; `at` is when it began."""
    return [] if at is None else [{"signal": "KILL", "at": at, "target": "leftovers"}]


def _seconds(
    stop: stop_request.Request | None, main: Mapping[str, Any] | None, now: float
) -> float | None:
    """From the request, or else from the end of the main process, until all was gone."""
    began = stop["requested_at"] if stop is not None else (main or {}).get("ended_at")
    return None if began is None else max(0.0, now - began)


def _group_removed(group: Group | None) -> dict[str, bool]:
    return {} if group is None else {"cgroup_removed": group.remove()}


def _cause_of_main(main: journal.Record, oom_kills: int) -> str:
    if main.get("stop"):
        return stopping.exit_cause(main["stop"])
    if oom_kills == 0 and main.get("by") == "keeper" and main["signal"] == signal.SIGKILL:
        return "supervisor_lost"  # it died with its supervisor
    return causes.of_main(main, oom_kills)


def status_of(info: os.waitid_result) -> dict[str, Any]:
    """Code or signal, never both; the other is None."""
    if info.si_code == os.CLD_EXITED:
        return {"code": info.si_status, "signal": None, "core": False}
    return {"code": None, "signal": info.si_status, "core": info.si_code == os.CLD_DUMPED}


def unrecordable(error: OSError) -> tuple[str, dict[str, Any]]:
    """Nothing runs whose identity cannot be recorded."""
    return "never_started", {"step": "journal", "errno": error.errno, "message": error.strerror}


def cause_of_failure(failure: dict[str, Any]) -> str:
    return _CAUSES.get(failure["step"], "start_failed")


def _end_time(attempt: Attempt) -> float:
    assert attempt.started_at is not None
    return attempt.started_at + (time.monotonic() - attempt.started_clock)
