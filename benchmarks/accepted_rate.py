"""How many submits are accepted per second, against a bare application that inserts a row?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from measurement import begin, median, quick
from yard_under_test import BASE, SMALL, KeepAlive, Yard, free_port, until

SECONDS = 0.5 if quick() else 3.0
ROUNDS = 1 if quick() else 3
CLIENTS = (1, 8)
BULK = 500 if quick() else 5000
BODY = {"name": "bench", "command": ["true"], **SMALL}


def one_client(port: int, key: str, path: str, seconds: float) -> float:
    """Accepted per second over one connection."""
    client = KeepAlive(port, key)
    status, answer = client.request("POST", path, BODY)
    assert status in (200, 201), answer
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        client.request("POST", path, BODY)
        count += 1
    return count / (time.monotonic() - began)


def rate(pool: ProcessPoolExecutor, clients: int, port: int, key: str, path: str) -> float:
    runs = [pool.submit(one_client, port, key, path, SECONDS) for _ in range(clients)]
    return sum(run.result() for run in runs)


def bare_application(port: int, folder: str) -> subprocess.Popen[bytes]:
    application = Path(__file__).with_name("bare_application.py")
    return subprocess.Popen([sys.executable, application, str(port), folder])


def main() -> None:
    result = begin(__doc__ or "")
    port = free_port()
    floors: dict[int, list[float]] = {clients: [] for clients in CLIENTS}
    rates: dict[int, list[float]] = {clients: [] for clients in CLIENTS}
    bulk: list[float] = []
    pool = ProcessPoolExecutor(max(CLIENTS), mp_context=get_context("spawn"))
    with tempfile.TemporaryDirectory() as folder, Yard() as yard, pool:
        yard.api("POST", "/system/stop-queue")
        bare = bare_application(port, folder)
        try:
            until(lambda: _answers(port), 30)
            list(pool.map(abs, range(64)))  # the client processes are up before anything is timed
            for _ in range(ROUNDS):
                for clients in CLIENTS:
                    floors[clients].append(rate(pool, clients, port, "", "/jobs"))
                    rates[clients].append(
                        rate(pool, clients, yard.port, yard.http.key, f"{BASE}/jobs")
                    )
                began = time.monotonic()
                yard.submit_many(["true"], BULK)
                bulk.append(BULK / (time.monotonic() - began))
        finally:
            bare.terminate()
            bare.wait()
    for clients in CLIENTS:
        floor, ours = median(floors[clients]), median(rates[clients])
        result.add(f"floor: bare application, {clients} clients", floor, "submits/s")
        result.add(f"runyard, {clients} clients", ours, "submits/s")
        result.add(f"runyard over floor, {clients} clients", ours / floor, "x", ">= 0.5")
    result.add("runyard, bulk", median(bulk), "jobs/s")
    single = max(median(values) for values in rates.values())
    result.add("runyard, bulk over single", median(bulk) / single, "x", ">= 10")
    result.keep()


def _answers(port: int) -> bool:
    try:
        return KeepAlive(port).request("POST", "/jobs", BODY)[0] == 200
    except OSError:
        return False


if __name__ == "__main__":
    main()
