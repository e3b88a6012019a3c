"""The application that Celery's worker runs: one task that starts a command and waits for it."""

from __future__ import annotations

import os
import subprocess

from celery import Celery

app = Celery("bench", broker=os.environ["BENCH_REDIS"], backend=os.environ["BENCH_REDIS"])
app.conf.task_track_started = True


@app.task
def run(command: list[str]) -> int:
    return subprocess.call(command)
