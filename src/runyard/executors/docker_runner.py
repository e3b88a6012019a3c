"""The main process of an attempt in a container: starts it, waits for it, ends it, removes it.

`python -I -S docker_runner.py PLAN`, in the data directory. It is what the supervisor owns of the
attempt; the engine may die and come back while it waits. Standard library only.
"""

from __future__ import annotations

import os
import sys

if "runyard" not in sys.modules:
    # Only this package is importable, and of it only what needs nothing else.
    package = type(sys)("runyard")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["runyard"] = package

import contextlib
import json
import queue
import signal
import threading
import time
from datetime import datetime
from typing import Any

from runyard.executors import docker_files, docker_pulling
from runyard.executors.docker_memory import MemoryWatch
from runyard.supervisor import identity, protocol, stop_request
from runyard.supervisor.engine_http import Engine, EngineGone, EngineRefused
from runyard.supervisor.news import NewsSender

NOT_STARTED = 125  # as the exit code of a runner whose container never ran
_STOP, _ENDED, _MISSING = "stop", "ended", "missing"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_KILL_AGAIN_S = 1.0
_EXECUTE_S = 5.0
# As Docker and podman say that they cannot give a container the GPUs it is to have.
_GPUS_IGNORED = "the engine takes no notice of a request for GPUs"
_WITHOUT_GPUS = ("could not select device driver", "unresolvable CDI devices", _GPUS_IGNORED)
_BELOW_SECONDS = 26  # of "2026-01-01T00:00:00.123456789Z": the engine tells nanoseconds


class Stopped(Exception):
    """Asked to end before the container ran."""


class Runner:
    def __init__(self, plan: dict[str, Any], folder: str) -> None:
        self.plan = plan
        self.folder = folder
        self.engine = Engine(plan.get("socket", ""))
        self.name = str(plan.get("name", ""))
        self.events: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.deadline: float | None = None
        self.asked_at: float | None = None
        self.killed_at: float | None = None
        self.memory: MemoryWatch | None = None

    def run(self) -> int:
        signal.signal(signal.SIGTERM, lambda *_: self.events.put(_STOP))
        if refused := self.plan.get("refused"):
            return self._refuse(refused)
        try:
            docker_pulling.pull_if_needed(self.engine, self.plan, self.folder, self.check_stop)
            self._begin()
        except Stopped:
            return self._end_unstarted("", {})
        except EngineRefused as error:
            lacks_gpus = any(words in error.message for words in _WITHOUT_GPUS)
            return self._end_unstarted(
                "gpu_runtime_missing" if lacks_gpus else "start_failed",
                {"step": "container", "path": self.plan["image"], "message": error.message},
            )
        threading.Thread(target=self._wait, name="wait", daemon=True).start()
        known = self._until_ended()
        return self._end(known)

    # start

    def _begin(self) -> None:
        try:
            self._create()
            self._start()
        except EngineRefused as error:
            if "init" not in error.message or not self.plan["body"]["HostConfig"]["Init"]:
                raise
            # An engine without an init of its own: the job is process 1 then. Docker says so at
            # the start, podman when it is created.
            self.plan["body"]["HostConfig"]["Init"] = False
            self._remove()
            self._create()
            self._start()
        self._tell_start()

    def _create(self) -> None:
        """By name: one that an earlier try made before the engine broke off is taken."""
        body = self._body()

        def create() -> None:
            try:
                self.engine.call("POST", "/containers/create", {"name": self.name}, body)
            except EngineRefused as error:
                if error.status != 409:
                    raise

        self._with_engine(create)

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = self.plan["body"]
        for path in self.plan["open"]:
            os.chmod(path, 0o777)
        if self.plan["open"]:
            os.chmod(self.folder, 0o777)
            os.chmod(f"{self.folder}/{protocol.TEMPORARY}", 0o777)
            os.chmod(f"{self.folder}/{protocol.LOG}", 0o666)
        if self.plan["own_user"] and self._with_engine(self._is_rootless):
            return {**body, "User": "0:0"}  # which is ours outside
        return body

    def _is_rootless(self) -> bool:
        told = self.engine.call("GET", "/info") or {}
        # The first as podman says it, the second as Docker does.
        return told.get("Rootless") is True or any(
            "rootless" in str(one) for one in told.get("SecurityOptions") or ()
        )

    def _start(self) -> None:
        self.check_stop()
        self._check_gpus()
        self._with_engine(self._start_once)

    def _check_gpus(self) -> None:
        """Podman's service leaves out what it does not know, and would run the job without."""
        asked = self.plan["body"]["HostConfig"].get("DeviceRequests")
        if not asked:
            return
        seen = self._with_engine(lambda: self.engine.inspect(self.name)) or {}
        kept = seen.get("HostConfig", {}).get("DeviceRequests") or []
        if [one.get("DeviceIDs") for one in kept] != [one["DeviceIDs"] for one in asked]:
            raise EngineRefused(501, _GPUS_IGNORED)

    def _tell_start(self) -> None:
        seen = self._with_engine(lambda: self.engine.inspect(self.name)) or {}
        pid = int(seen.get("State", {}).get("Pid") or 0)
        if "Memory" in self.plan["body"]["HostConfig"]:
            self.memory = MemoryWatch(str(seen.get("Id")), pid)
        started = {
            "id": seen.get("Id"),
            "pid": pid,
            "start_ticks": identity.start_ticks(pid) if pid else None,
            "started_at": _epoch(seen.get("State", {}).get("StartedAt")) or time.time(),
        }
        docker_files.write(self.folder, self._file(docker_files.STARTED), started)
        if not self.plan["service"]:
            news = NewsSender()
            news.send("container_started", self.plan["attempt_id"], **started)
            news.flush(1.0)
            news.close()

    def _start_once(self) -> None:
        self.engine.call("POST", f"/containers/{self.name}/start")

    def check_stop(self) -> None:
        try:
            self.events.get_nowait()
        except queue.Empty:
            return
        raise Stopped

    # its life

    def _wait(self) -> None:
        """In a thread of its own: until the container has ended, over any number of engines."""
        pause = _FIRST_PAUSE_S
        while True:
            try:
                query = {"condition": "not-running"}
                path = f"/containers/{self.name}/wait"
                self.engine.call("POST", path, query, timeout_s=None)
                seen = self.engine.inspect(self.name)
                if seen is not None and not _ended(seen):
                    continue
                self.events.put(_MISSING if seen is None else _ENDED)
                return
            except EngineRefused as error:
                if error.status == 404:
                    self.events.put(_MISSING)
                    return
            except EngineGone:
                pass
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _until_ended(self) -> bool:
        """False if the container vanished: nobody knows how it ended then."""
        while True:
            left = None if self.deadline is None else self.deadline - time.monotonic()
            if left is not None and left <= 0:
                self._kill()
                left = _KILL_AGAIN_S
            try:
                event = self.events.get(timeout=left)
            except queue.Empty:
                continue
            if event is _STOP:
                self._begin_stop()
            else:
                return event is _ENDED

    def _begin_stop(self) -> None:
        """Every request: the last one's grace counts, if that is shorter."""
        request = stop_request.read(self.folder) if not self.plan["service"] else None
        grace_s = float(request["grace_s"] if request else self.plan["grace_s"])
        if grace_s > 0 and self.asked_at is None:
            self.asked_at = time.time()
            self._ask_to_end()
        # Counted from when it was told: an engine takes its time to do that.
        deadline = time.monotonic() + grace_s
        self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)

    def _ask_to_end(self) -> None:
        """The job's whole process group, as outside of containers: the init would tell its first
        process only, and a shell there keeps it to itself."""
        try:
            with open(self.plan["pid_file"], encoding="ascii") as file:
                group = int(file.read())
            command = ["/bin/sh", "-c", f"kill -s TERM -- -{group}"]
            if group > 1 and self._execute(command) == 0:
                return
        except (OSError, ValueError, LookupError, TypeError, EngineRefused, EngineGone):
            pass
        self._signal("TERM")

    def _execute(self, command: list[str]) -> int | None:
        body: dict[str, Any] = {"Cmd": command, "AttachStdout": True}
        path, limit = f"/containers/{self.name}/exec", _EXECUTE_S
        made = self.engine.call("POST", path, body=body, timeout_s=limit)
        path = f"/exec/{made['Id']}"
        self.engine.call("POST", f"{path}/start", body={"Detach": False}, timeout_s=limit)
        code: int | None = self.engine.call("GET", f"{path}/json", timeout_s=limit)["ExitCode"]
        return code

    def _kill(self) -> None:
        self.killed_at = self.killed_at or time.time()
        self._signal("KILL")

    def _signal(self, name: str) -> None:
        """One that has ended meanwhile, or an engine that is away: the waiting tells."""
        with contextlib.suppress(EngineRefused, EngineGone):
            self.engine.call("POST", f"/containers/{self.name}/kill", {"signal": f"SIG{name}"})

    # end

    def _end(self, known: bool) -> int:
        seen = self._with_engine(lambda: self.engine.inspect(self.name)) if known else None
        fields = docker_end_of(seen)
        if seen is not None and self.memory is not None and self.memory.ran_out():
            fields["oom_killed"] = True
        if seen is not None and fields["code"] == NOT_STARTED and self._log_is_empty():
            self._keep_engine_log()
        self._finish({**fields, "asked_at": self.asked_at, "killed_at": self.killed_at})
        code = fields["code"]
        return NOT_STARTED if code is None else int(code)

    def _end_unstarted(self, cause: str, detail: dict[str, Any]) -> int:
        if detail:
            print(f"runyard: {detail['path']}: {detail['message']}", file=sys.stderr, flush=True)
        self._finish({"code": None, "cause": cause, "detail": detail})
        return NOT_STARTED

    def _refuse(self, detail: dict[str, Any]) -> int:
        """Nothing was asked of the engine, and nothing will be."""
        print(f"runyard: {detail['path']}: {detail['message']}", file=sys.stderr, flush=True)
        told = {"code": None, "cause": "start_failed", "detail": {"step": "mounts", **detail}}
        docker_files.write_once(self.folder, docker_files.END, told)
        docker_files.write(self.folder, docker_files.GONE, {"by": "runner"})
        return NOT_STARTED

    def _finish(self, fields: dict[str, Any]) -> None:
        """Record, then remove: at every instant the exit code is on disk or with the engine."""
        docker_files.write_once(self.folder, self._file(docker_files.END), fields)
        self._remove()
        docker_files.write(self.folder, self._file(docker_files.GONE), {"by": "runner"})

    def _remove(self) -> None:
        """With whatever it is that still runs in it, and only when the engine has none of it."""

        def remove() -> None:
            try:
                query = {"force": "true", "v": "true"}
                self.engine.call("DELETE", f"/containers/{self.name}", query)
            except EngineRefused as error:
                if error.status not in (404, 409):  # 409: it is being removed already
                    raise
            while self.engine.inspect(self.name) is not None:
                time.sleep(0.02)

        self._with_engine(remove)

    def _with_engine(self, work: Any) -> Any:
        """Try until there is an engine to try it with."""
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return work()
            except EngineGone:
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _file(self, name: str) -> str:
        service = self.plan["service"]
        return f"{service}-{name}" if service else name

    def _log_is_empty(self) -> bool:
        return os.stat(self.plan["log"]).st_size == 0

    def _keep_engine_log(self) -> None:
        """The shell could not even open the job's log: what it said about that."""
        query = {"stdout": "1", "stderr": "1", "tail": "50"}
        try:
            said = self.engine.call("GET", f"/containers/{self.name}/logs", query)
        except (EngineRefused, EngineGone):
            return
        if isinstance(said, bytes):
            sys.stderr.buffer.write(b"".join(line[8:] + b"\n" for line in said.splitlines()))
            sys.stderr.buffer.flush()


def docker_end_of(seen: dict[str, Any] | None) -> dict[str, Any]:
    """The end record of a container, from what the engine knows of it."""
    if seen is None:
        return {"code": None, "cause": "lost"}
    state = seen["State"]
    ran, ended = _epoch(state.get("StartedAt")), _epoch(state.get("FinishedAt"))
    if ran and ended:
        ran = min(ran, ended)  # an engine notes the start of a very short one after its end
    return {
        "id": seen["Id"],
        "code": int(state["ExitCode"]) if ran else None,
        "oom_killed": bool(state.get("OOMKilled")),
        "started_at": ran,
        "ended_at": ended,
    }


def _ended(seen: dict[str, Any]) -> bool:
    state = seen["State"]
    return not state.get("Running") and state.get("Status") not in ("created", "restarting")


def _epoch(text: object) -> float | None:
    """Seconds since 1970 of the engine's time; None for its year 1."""
    if not isinstance(text, str) or text.startswith("0001"):
        return None
    whole = text.rstrip("Z")[:_BELOW_SECONDS]
    try:
        return datetime.fromisoformat(whole + "+00:00").timestamp()
    except ValueError:
        return None


def main(arguments: list[str]) -> int:
    path = arguments[0]
    with open(path, "rb") as file:
        plan = json.load(file)
    return Runner(plan, os.path.dirname(path)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
