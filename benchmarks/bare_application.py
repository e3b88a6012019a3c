"""The floor of accepted_rate.py: FastAPI, a validated body, one SQLite insert synced to disk."""

from __future__ import annotations

import sqlite3
import sys
import threading
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Body(BaseModel):
    name: str
    command: list[str]
    cpu_cores: float
    memory_gb: float
    gpu_count: int
    max_retries: int


def application(folder: Path) -> FastAPI:
    app = FastAPI()
    connection = sqlite3.connect(folder / "bare.db", check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT, body TEXT)")
    lock = threading.Lock()

    @app.post("/jobs")
    def submit(body: Body) -> dict[str, int]:
        with lock:
            row = connection.execute(
                "INSERT INTO jobs (name, body) VALUES (?, ?)", (body.name, body.model_dump_json())
            )
        return {"id": row.lastrowid or 0}

    return app


if __name__ == "__main__":
    uvicorn.run(application(Path(sys.argv[2])), port=int(sys.argv[1]), log_level="warning")
