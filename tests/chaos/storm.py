"""Jobs stream in while server, keeper, supervisors and the jobs themselves are killed."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard.supervisor import identity, journal
from yards import SMALL, RunningYard, Truth, keepers_of, until

# Every process of an attempt holds the lock of its port (7), that of its job (8) and the FIFO (9):
# an attempt that starts while anything lives that had one of them cannot get it, and says so.
SCRIPT = """
exec 7>{folder}/port.${{RUNYARD_PORT_0:-none.$RUNYARD_ATTEMPT_ID}}
exec 8>{folder}/lock.$RUNYARD_JOB_ID 9>{truth}
flock -n 7 || echo double $RUNYARD_ATTEMPT_ID >>{folder}/marks
flock -n 8 || echo double $RUNYARD_ATTEMPT_ID >>{folder}/marks
echo start $RUNYARD_ATTEMPT_ID >>{folder}/marks
line=0
count() {{ while [ $line -lt $1 ]; do line=$((line + 1)); echo $line; done; }}
count {half}
{leftover}
sleep {seconds}
count {lines}
echo end $RUNYARD_ATTEMPT_ID >>{folder}/marks
exit {code}
"""
LINES = [str(number) for number in range(1, 41)]  # of the log of an attempt that finished
LEFTOVERS = ("", "", "setsid sleep 60 &", "(setsid env -i sleep 60 &)", "trap '' TERM")
KINDS = ("server", "keeper", "supervisor", "supervisor", "job", "all")
KEEPER, SUPERVISOR = "runyard-keeper", "runyard-superv"  # what the kernel calls them
ENDS = {"job_completed", "job_failed", "job_retrying", "job_cancelled"}


@dataclass
class Storm:
    yard: RunningYard
    folder: Path
    random: random.Random
    truth: Truth
    codes: dict[str, int] = field(default_factory=dict)  # of every job that was acknowledged
    cancelled: set[str] = field(default_factory=set)  # whose cancel was acknowledged
    killed: Counter[str] = field(default_factory=Counter)
    supervisors_killed: set[tuple[int, int]] = field(default_factory=set)  # (pid, start ticks)
    calm: threading.Event = field(default_factory=threading.Event)
    trouble: list[str] = field(default_factory=list)
    strangers: Strangers | None = None
    port_counts: dict[str, int] = field(default_factory=dict)  # as `codes`
    looked_at: set[str] = field(default_factory=set)  # that had ended while the storm went on

    def summary(self) -> str:
        """For a person who wants to know what the weather was like."""
        jobs = [self.yard.job(ref)["status"] for ref in self.codes]
        ends = [a["end"] for ref in self.codes for a in self.yard.attempts(ref)]
        return f"killed {dict(self.killed)}, jobs {Counter(jobs)}, attempts {Counter(ends)}"

    # what happens

    def rage(self, seconds: float) -> None:
        """Submit, cancel and kill for so long, longer where hardly anything happens in that time;
        returns when every job has ended."""
        threads = self._threads()
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline or not self._raged(seconds):
                time.sleep(self.random.uniform(0.1, 1.2))
                self._imitate_one()
                self._kill_something()
        finally:
            self.calm.set()
            for thread in threads:
                thread.join()
        self._ensure_server()
        until(lambda: not self._unended(), 180, lambda: self.described(self._unended()), every=0.3)

    def _raged(self, seconds: float) -> bool:
        return len(self.codes) > seconds and sum(self.killed.values()) > seconds / 5

    def _duties(self) -> list[Any]:
        return [self._submit_one, self._submit_one, self._cancel_one, self._look_at_ends]

    def _threads(self) -> list[threading.Thread]:
        """What each chooses is settled here: the order in which they begin is the machine's."""
        return [
            threading.Thread(target=self._guarded, args=(duty, self._fork()))
            for duty in self._duties()
        ]

    def _fork(self) -> random.Random:
        """For choices whose number depends on the machine: those after them stay the same."""
        return random.Random(self.random.random())

    def _guarded(self, duty: Any, chosen: random.Random) -> None:
        """The server is often away; everything else is worth knowing."""
        while not self.calm.is_set():
            try:
                duty(chosen)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
            except Exception as error:
                self.trouble.append(repr(error))
                return
            time.sleep(chosen.uniform(0.02, 0.2))

    def _submit_one(
        self, chosen: random.Random, seconds: float | None = None, **fields: Any
    ) -> str | None:
        code = chosen.choice((0, 0, 0, 3, 42))
        script = SCRIPT.format(
            folder=self.folder,
            truth=self.truth.path,
            leftover=chosen.choice(LEFTOVERS),
            seconds=round(chosen.expovariate(3), 2) if seconds is None else seconds,
            code=code,
            half=len(LINES) // 2,
            lines=len(LINES),
        )
        body = {**SMALL, "command": ["sh", "-c", script], "grace_s": 0.5, "max_retries": 1}
        body["ports"] = chosen.choice((0, 0, 1))
        answer = self.yard.api("POST", "/jobs", body | fields, timeout=5)
        if answer.status == 201:
            ref = str(answer.body["job_id"])
            self.port_counts[ref] = body["ports"]
            self.codes[ref] = code
            return ref
        if answer.status != 503:
            self.trouble.append(f"submit answered {answer.status} {answer.data[:300]!r}")
        return None

    def _cancel_one(self, chosen: random.Random) -> None:
        share = chosen.random()
        if newest := list(self.codes)[-20:]:
            self._cancel(newest[int(share * len(newest))])

    def _cancel(self, ref: str) -> None:
        answer = self.yard.api("POST", f"/jobs/{ref}/cancel", timeout=5)
        if answer.ok:
            self.cancelled.add(ref)
        elif answer.status not in (409, 503):
            self.trouble.append(f"cancel answered {answer.status} {answer.data[:300]!r}")

    def _look_at_ends(self, _chosen: random.Random) -> None:
        """No record says that a job has ended while a process of it lives."""
        states = "completed,failed,cancelled"
        for job in self.yard.api("GET", f"/jobs?status={states}&limit=20", timeout=5).body or []:
            ref = job["job_id"]
            if ref not in self.looked_at and not self._is_free(ref):
                self.trouble.append(f"{ref} is {job['status']} and a process of it lives")
            self.looked_at.add(ref)
        self.calm.wait(0.3)

    def _is_free(self, ref: str) -> bool:
        """The lock of a job that has ended: no attempt of it can want it any more."""
        try:
            with open(self.folder / f"lock.{ref}") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return True  # it never started
        except BlockingIOError:
            return False
        return True

    def _imitate_one(self) -> None:
        """One that runs while the next kill comes, if there is one."""
        if self.strangers is None or not self.codes:
            return
        ref = list(self.codes)[-1]
        with contextlib.suppress(OSError, http.client.HTTPException):
            running = self.yard.api("GET", "/jobs?status=running", timeout=5).body or []
            ref = next((job["job_id"] for job in running), ref)
        self.strangers.imitate(ref, self.yard.data)

    def _kill_something(self) -> None:
        what = self.random.choice(KINDS)
        if what == "server":
            self.yard.kill9()
        elif what == "keeper":
            self._kill_processes(KEEPER, 1)
        elif what == "supervisor":
            self._kill_processes(SUPERVISOR, self.random.randint(1, 3))
        elif what == "job":
            self._kill_a_main_process()
        else:
            self.yard.kill9()
            self._kill_processes(KEEPER, 9)
            self._kill_processes(SUPERVISOR, self.random.randint(1, 9))
        self.killed[what] += 1
        self._ensure_server()

    def _kill_processes(self, name: str, most: int) -> None:
        """Of our own data directory, held by a pidfd before they are looked at again."""
        pids = keepers_of(self.yard.data)
        self._fork().shuffle(pids)
        for pid in [pid for pid in pids if _name(pid) == name][:most]:
            with contextlib.suppress(OSError):
                pidfd = os.pidfd_open(pid)
                ticks = identity.start_ticks(pid)
                if pid in keepers_of(self.yard.data) and _name(pid) == name:
                    if ticks is not None:  # a fork of the keeper may become one meanwhile
                        self.supervisors_killed.add((pid, ticks))
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)

    def _kill_a_main_process(self) -> None:
        """As a person would who finds it in `top`; the journal says which process it is."""
        names = [path.name for path in (self.yard.data / "attempts").iterdir()]
        self._fork().shuffle(names)
        for name in names[:50]:
            try:
                read = journal.read(str(self.yard.data / "attempts" / name))
            except FileNotFoundError:
                continue
            if read.job is None or read.main_exit is not None or read.exit is not None:
                continue
            with contextlib.suppress(OSError):
                pidfd = os.pidfd_open(read.job["pid"])
                if identity.start_ticks(read.job["pid"]) == read.job["start_ticks"]:
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)
            return

    def _ensure_server(self) -> None:
        if self.yard.process is None or self.yard.process.poll() is not None:
            self.yard.start()

    # what has to be true then

    def _unended(self) -> list[str]:
        answer = self.yard.api("GET", "/jobs?status=pending,scheduled,running,retrying,cancelling")
        return [job["job_id"] for job in answer.body]

    def described(self, refs: list[str]) -> str:
        return "\n".join(f"{self.yard.job(r)}\n{self.yard.attempts(r)}" for r in refs[:3])

    def marks(self) -> list[list[str]]:
        path = self.folder / "marks"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def assert_all_true(self) -> None:
        assert self.trouble == []
        until(lambda: not self.truth.held(), 5, "a process outlived its job")
        marks = self.marks()
        doubles = [mark for mark in marks if mark[0] == "double"]
        assert doubles == [], "an attempt started while an earlier one of its job lived"
        starts = Counter(attempt for word, attempt in marks if word == "start")
        assert [a for a, n in starts.items() if n > 1] == [], "an attempt ran twice"
        finished = {attempt for word, attempt in marks if word == "end"}
        for ref, code in self.codes.items():
            self._assert_job_true(ref, code, set(starts), finished)

    def _assert_job_true(self, ref: str, code: int, started: set, finished: set) -> None:
        job = self.yard.job(ref)  # fails if an acknowledged job is lost
        attempts = self.yard.attempts(ref)
        context = f"{job}\n{attempts}"
        if ref in self.cancelled:
            assert job["status"] == "cancelled", context
        if job["status"] == "completed":
            assert code == 0, context
        ends = Counter(
            event["attempt_id"]
            for event in self.yard.ask(f"/jobs/{ref}/events")
            if event["code"] in ENDS and event["attempt_id"]
        )
        for attempt in attempts:
            name = attempt["attempt_id"]
            assert attempt["status"] == "ended", context
            assert ends[name] == 1, f"{name} has {ends[name]} ends\n{context}"
            assert attempt["exit_code"] in (None, code), context
            if attempt["exit_code"] is not None:
                assert name in finished, f"an exit code without a finished run\n{context}"
            if attempt["end"] == "never_started":
                assert name not in started, context
            self._assert_journal_true(name, attempt)
            if name in started:
                self._assert_log_whole(ref, attempt, name in finished)
        self._assert_receipt_true(ref, attempts)

    def _assert_log_whole(self, ref: str, attempt: dict[str, Any], is_finished: bool) -> None:
        logged = self.yard.logs(ref, attempt=attempt["number"])
        lines = [line for line in logged if line.isdigit()]  # sh may say who was killed
        assert lines == (LINES if is_finished else LINES[: len(lines)]), (attempt, logged)

    def _assert_receipt_true(self, ref: str, attempts: list[dict[str, Any]]) -> None:
        """Every end has one, of the last attempt or of nothing, and it names the ports."""
        receipt = self.yard.ask(f"/jobs/{ref}/receipt")
        context = f"{receipt}\n{attempts}"
        assert receipt["proof"] or attempts[-1]["end"] == "never_started", context
        assert receipt["stuck"] == [], context
        if receipt["attempt_id"] is None:
            assert receipt["processes_ended"] == 0, context
            return
        assert receipt["attempt_id"] == attempts[-1]["attempt_id"], context
        assert len(receipt["ports"]) == self.port_counts.get(ref, 0), context

    def _assert_journal_true(self, name: str, attempt: dict[str, Any]) -> None:
        folder = self.yard.data / "attempts" / name
        if not folder.exists():
            assert attempt["end"] == "never_started"
            return
        records = [r for r in journal.read(str(folder)).records if r["kind"] == "exit"]
        if not records:
            assert attempt["end"] in ("never_started", "cancelled"), attempt
            assert attempt["started_at"] is None
            return
        assert len(records) == 1
        assert records[0]["code"] == attempt["exit_code"], (records, attempt)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Strangers:
    """Processes that look like a job's and are none: they name it, and run what it runs."""

    MOST = 24  # at a time

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []
        self._earlier_harmed = 0

    def imitate(self, ref: str, data: Path) -> None:
        if len(self._all) >= self.MOST:
            oldest = self._all.pop(0)
            self._earlier_harmed += oldest.poll() is not None
            oldest.kill()
            oldest.wait()
        words = [ref, f"{ref}.1", f"RUNYARD_ATTEMPT_ID={ref}.1", str(data)]
        waits = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)", *words]
        self._all.append(subprocess.Popen(waits, start_new_session=True))

    def harmed(self) -> int:
        assert self._all
        now = sum(stranger.poll() is not None for stranger in self._all)
        return now + self._earlier_harmed

    def assert_unharmed(self) -> None:
        assert self.harmed() == 0

    def close(self) -> None:
        for stranger in self._all:
            stranger.kill()
            stranger.wait()
