"""A real yard on a real store behind a real socket; only the processes of jobs are scripted."""

from __future__ import annotations

import http.client
import json
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import uvicorn

from runyard.api.app import create_app
from runyard.settings import Settings
from runyard.stores.opening import open_store
from scripted_executor import ScriptedExecutor
from scripted_machine import ScriptedMachine
from scripted_yard import compose

BASE = "/api/v1/training"
SMALL = {"cpu_cores": 0.01, "memory_gb": 0.01, "gpu_count": 0, "max_retries": 0}


def until(condition, seconds=60.0, words=""):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {words}"
        time.sleep(0.005)
    return value


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

    def __init__(self, folder: Path, web: Path | None = None, **settings) -> None:
        wanted = {"max_concurrent": 4, "preflight": "off", **settings}
        self.settings = Settings(data_dir=folder, **wanted)
        folder.mkdir(exist_ok=True)
        self.store = open_store(self.settings.store_url)
        self.executor = ScriptedExecutor(folder / "attempts")
        self.parts, self.yard = compose(
            self.settings, self.store, self.executor, ScriptedMachine()
        )
        self.yard.open()
        _, self.key = self.yard.key_ring.create("admin", "admin")
        _, self.user = self.yard.key_ring.create("ann", "user")
        _, self.other = self.yard.key_ring.create("bob", "user")
        _, self.viewer = self.yard.key_ring.create("vera", "viewer")
        self.app = create_app(self.yard, self.settings, web or folder / "web")
        self._serve()

    def _serve(self) -> None:
        config = uvicorn.Config(
            self.app,
            host="127.0.0.1",
            port=0,
            log_config=None,
            lifespan="off",
            ws="websockets-sansio",
            ws_max_size=64 * 1024,
            ws_per_message_deflate=False,
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
        self._thread.join(60)
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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
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
