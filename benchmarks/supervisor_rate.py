"""How fast keeper and supervisors are: message to exec, and `true` jobs per second.

Run: python benchmarks/supervisor_rate.py [--jobs 1000] [--slots 2]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))

from runyard.supervisor import journal, keeper_client, protocol

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


class Bench:
    def __init__(self, data_dir: str) -> None:
        self.data_dir = data_dir
        self.news = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.news.bind(f"{data_dir}/{protocol.NEWS_SOCKET}")
        self.news.settimeout(30)
        self.keeper = keeper_client.KeeperClient(data_dir)
        self.keeper.ensure()
        self.count = 0

    def start(self, argv: list[str]) -> str:
        self.count += 1
        attempt_id = f"job-{self.count}.1"
        spec = {
            "attempt_id": attempt_id,
            "tag": random.getrandbits(61),
            "argv": argv,
            "env": {**ENVIRONMENT, protocol.MARKER: attempt_id},
            "cwd": "/",
        }
        journal.create(protocol.attempt_folder(self.data_dir, attempt_id), spec)
        self.keeper.run(attempt_id)
        return attempt_id

    def hear_end(self) -> dict[str, object]:
        while True:
            piece: dict[str, object] = json.loads(self.news.recv(1 << 16))
            if piece["kind"] == "ended":
                return piece


def spawn_floor(rounds: int, argv: list[str], stamp: str) -> list[float]:
    times = []
    for _ in range(rounds):
        begun = time.time()
        os.waitpid(os.posix_spawn(argv[0], argv, ENVIRONMENT), 0)
        times.append(read_stamp(stamp) - begun)
    return times


def read_stamp(path: str) -> float:
    with open(path) as file:
        return int(file.read()) / 1e9


def latency(bench: Bench, rounds: int, argv: list[str], stamp: str) -> list[float]:
    times = []
    for _ in range(rounds):
        begun = time.time()
        bench.start(argv)
        bench.hear_end()
        times.append(read_stamp(stamp) - begun)
        time.sleep(0.01)
    return times


def rate(bench: Bench, jobs: int, slots: int) -> float:
    begun = time.monotonic()
    for _ in range(slots):
        bench.start(["/usr/bin/true"])
    for _ in range(jobs - slots):
        bench.hear_end()
        bench.start(["/usr/bin/true"])
    for _ in range(slots):
        bench.hear_end()
    return jobs / (time.monotonic() - begun)


def memory(bench: Bench, jobs: int) -> dict[str, float]:
    for _ in range(jobs):
        bench.start(["/usr/bin/sleep", "100"])
    while len(bench.keeper.list()["attempts"]) < jobs:
        time.sleep(0.05)
    time.sleep(0.5)
    pss = [proportional(pid) for pid in bench.keeper.list()["attempts"].values()]
    for attempt_id in bench.keeper.list()["attempts"]:
        folder = protocol.attempt_folder(bench.data_dir, attempt_id)
        job = journal.read(folder).job
        assert job is not None
        os.kill(job["pid"], 9)
    for _ in range(jobs):
        bench.hear_end()
    keeper = proportional(bench.keeper.hello()["pid"])
    return {"supervisor_pss_mb": statistics.median(pss), "keeper_pss_mb": keeper}


def proportional(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data_dir:
        bench = Bench(data_dir)
        stamp = f"{data_dir}/stamp"
        argv = ["/bin/sh", "-c", f"exec date +%s%N > {stamp}"]
        floor = spawn_floor(options.rounds, argv, stamp)
        ours = latency(bench, options.rounds, argv, stamp)
        result = {
            "spawn_floor_ms": round(statistics.median(floor) * 1e3, 3),
            "start_ms": round(statistics.median(ours) * 1e3, 3),
            "start_p95_ms": round(sorted(ours)[int(len(ours) * 0.95)] * 1e3, 3),
            "over_floor": round(statistics.median(ours) / statistics.median(floor), 2),
            "true_per_s": round(rate(bench, options.jobs, options.slots)),
            **{k: round(v, 2) for k, v in memory(bench, 20).items()},
        }
        bench.keeper.leave()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
