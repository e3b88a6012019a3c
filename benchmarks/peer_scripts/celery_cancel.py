"""Run by Celery's own interpreter: a worker and Redis, and `revoke(terminate=True)`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from conversation import daemon, hold, until

OVER = {"SUCCESS", "FAILURE", "REVOKED"}
HERE = Path(__file__).resolve().parent
PORT = 6399


class CeleryTasks:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        os.environ["BENCH_REDIS"] = f"redis://127.0.0.1:{PORT}/0"
        os.environ["PYTHONPATH"] = str(HERE)

    def start(self) -> None:
        options = ["--bind", "127.0.0.1", "--port", PORT, "--save", "", "--dir", self.folder]
        daemon(self.folder, "redis", "redis-server", *options)
        import celery_app

        self.tasks = celery_app
        until(self._redis, 20, "redis")
        words = ["-m", "celery", "-A", "celery_app", "worker", "--concurrency=4", "--pool=prefork"]
        daemon(self.folder, "worker", sys.executable, *words, cwd=self.folder)
        until(lambda: celery_app.app.control.ping(timeout=1), 60, "a worker")

    def _redis(self) -> bool:
        try:
            self.tasks.app.backend.client.ping()
        except Exception:  # whatever it says before it is up
            return False
        return True

    def submit(self, command: list[str]) -> str:
        return str(self.tasks.run.delay(command).id)

    def cancel(self, ref: str) -> None:
        self.tasks.app.control.revoke(ref, terminate=True)

    def state(self, ref: str) -> tuple[str, bool]:
        state = str(self.tasks.app.AsyncResult(ref).state)
        return state, state in OVER

    def close(self) -> None: ...


if __name__ == "__main__":
    hold(CeleryTasks)
