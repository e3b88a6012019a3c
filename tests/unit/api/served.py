"""A real yard on a real store behind a real socket; only the processes of jobs are scripted."""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import uvicorn

from runyard.api.app import create_app
from runyard.domain.resources import Load
from runyard.engine.hub import Hub
from runyard.engine.machine import Machine
from runyard.engine.parts import Parts
from runyard.engine.yard import Yard
from runyard.executors.base import End, News, NewsKind, Sight, Sighting
from runyard.settings import Settings
from runyard.stores.opening import open_store

BASE = "/api/v1/training"
SMALL = {"cpu_cores": 0.01, "memory_gb": 0.01, "gpu_count": 0, "max_retries": 0}


def until(condition, seconds=20.0, words=""):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {words}"
        time.sleep(0.005)
    return value


class ScriptedExecutor:
    """Attempts live until `finish`, or a stop, ends them; their logs are files a test writes."""

    name = "local"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stubborn = False  # attempts that do not end when they are asked to
        self._lock = threading.Lock()
        self._sightings: dict[str, Sighting] = {}
        self._hear = None

    def open(self, hear) -> None:
        self._hear = hear

    def close(self, *, keep) -> None:
        pass

    def available(self):
        return True, ""

    def start(self, launch) -> None:
        now = time.time()
        with self._lock:
            if launch.attempt_id in self._sightings:
                return
            self._sightings[launch.attempt_id] = Sighting(Sight.RUNNING, started_at=now)
        path = Path(self.log_path(launch.attempt_id))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._hear(News(launch.attempt_id, NewsKind.STARTED, now))

    def stop(self, attempt_id, _stop) -> None:
        if not self.stubborn:
            self.finish(attempt_id, None, signal=15, cause="cancelled")

    def finish(self, attempt_id, code=0, *, signal=None, cause="exited") -> None:
        now = time.time()
        with self._lock:
            seen = self._sightings.get(attempt_id)
            if seen is not None and seen.sight is Sight.ENDED:
                return
            end = End(code, signal, cause, "supervisor", now, now, receipt={"proof": "echild"})
            self._sightings[attempt_id] = Sighting(Sight.ENDED, started_at=now, end=end)
        self._hear(News(attempt_id, NewsKind.ENDED, now, end))

    def inspect(self, attempt_ids):
        with self._lock:
            return {one: self._sightings.get(one, Sighting(Sight.ABSENT)) for one in attempt_ids}

    def log_path(self, attempt_id) -> str:
        return str(self.folder / attempt_id / "out.log")

    def remove(self, attempt_id) -> None:
        Path(self.log_path(attempt_id)).unlink(missing_ok=True)

    def known(self):
        with self._lock:
            return list(self._sightings)


class QuietMachine:
    """A large idle machine without GPUs."""

    def machine_id(self):
        return "machine-1"

    def boot_id(self):
        return "boot-1"

    def cpu_milli(self):
        return 64_000

    def memory_mb(self):
        return 256 * 1024

    def load(self):
        return Load(1.0, 2.0, 3.0)

    def gpus(self):
        return []

    def processes(self, _uuid):
        return []

    def used_mb(self, _uuid):
        return 0


class Answer:
    def __init__(self, status, headers, data):
        self.status, self.headers, self.data = status, headers, data

    @property
    def body(self):
        return json.loads(self.data) if self.data else None

    @property
    def code(self):
        return self.body["code"]


class Served:
    """`key` is an admin's; `user`, `other` and `viewer` are keys of those roles."""

    def __init__(self, folder: Path, **settings) -> None:
        self.settings = Settings(data_dir=folder, max_concurrent=4, **settings)
        folder.mkdir(exist_ok=True)
        self.store = open_store(self.settings.store_url)
        self.executor = ScriptedExecutor(folder / "attempts")
        machine = QuietMachine()
        self.parts = Parts(
            settings=self.settings,
            store=self.store,
            executors={"local": self.executor},
            machine=Machine(
                self.settings,
                machine,
                machine,
                locked_elsewhere=lambda _uuid: False,
                tag_of=lambda _pid: None,
                live_tags=set,
                clock=time.time,
            ),
            hub=Hub(),
            node_id="node-1",
            clock=time.time,
            random=secrets.token_bytes,
        )
        self.yard = Yard(self.parts, lambda _pid: None)
        self.yard.open()
        _, self.key = self.yard.key_ring.create("admin", "admin")
        _, self.user = self.yard.key_ring.create("ann", "user")
        _, self.other = self.yard.key_ring.create("bob", "user")
        _, self.viewer = self.yard.key_ring.create("vera", "viewer")
        self.app = create_app(self.yard, self.settings)
        self._serve()

    def _serve(self) -> None:
        config = uvicorn.Config(
            self.app,
            host="127.0.0.1",
            port=0,
            log_config=None,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until(lambda: self._server.started)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def close(self) -> None:
        self.yard.hub.close()
        self._server.should_exit = True
        self._thread.join(10)
        self.yard.close(keep=False)
        self.store.close()

    def call(self, method, path, body=None, *, data=None, key=None, headers=None, **query):
        """`key` None is the admin's, '' is none at all."""
        if query:
            path += "?" + urlencode(query, doseq=True)
        if body is not None:
            data = json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        secret = self.key if key is None else key
        if secret:
            sent["Authorization"] = f"Bearer {secret}"
        sent.update(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def api(self, method, path, body=None, **options):
        return self.call(method, BASE + path, body, **options)

    def submit(self, command="true", *, key=None, headers=None, **fields):
        body = {**SMALL, "command": command, **fields}
        answer = self.api("POST", "/jobs", body, key=key, headers=headers)
        assert answer.status == 201, answer.data
        return answer.body["job_id"]

    def job(self, job):
        return self.api("GET", f"/jobs/{job}").body

    def wait(self, job, *statuses):
        return until(
            lambda: (found := self.job(job))["status"] in statuses and found,
            words=f"{job} is {self.job(job)['status']}, not {statuses}",
        )

    def running(self, command="true", **fields):
        job = self.submit(command, **fields)
        self.wait(job, "running")
        return job

    def write(self, job, data, attempt=1):
        with open(self.executor.log_path(f"{job}.{attempt}"), "ab") as file:
            file.write(data)

    def finish(self, job, code=0, attempt=1):
        self.executor.finish(f"{job}.{attempt}", code)
        self.wait(job, "completed", "failed", "retrying", "cancelled")
