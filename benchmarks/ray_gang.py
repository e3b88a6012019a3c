"""How long do gangs on a Ray cluster take to start and to go, against Ray Jobs on the same one?

And how fast, and at what cost in memory, a log comes from a node. Needs the peer `ray`
(`python benchmarks/peers.py --install ray`), whose dashboard takes the jobs of Ray's own.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import peers
from measurement import Measurement, begin, median, quick
from yard_under_test import Yard, descendants, free_port, pss_mb, until

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
NODES, PER_NODE = 2, 2
RANKS = NODES * PER_NODE
ROUNDS = 1 if quick() else 5
STARTS = 2 if quick() else 16
PAUSE_S = 1.5  # between single jobs: enough for a process of Ray's to come up
LOG_MB = 5 if quick() else 200
LOG_MB_OF_RAY = 5 if quick() else 20  # it keeps all that it follows
WRITER = (
    "import sys\n"
    "block = b''.join(b'%08d %s\\n' % (number, b'x' * 90) for number in range(10_000))\n"
    "for _ in range(int(sys.argv[1])):\n"
    "    sys.stdout.buffer.write(block)\n"
)


class Client:
    """The script that talks with Ray Jobs, and sees which GPUs are free."""

    def __init__(self, python: Path, cluster: Any) -> None:
        at = f"http://127.0.0.1:{cluster.dashboard_port}"
        self._process = subprocess.Popen(
            [python, HERE / "peer_scripts" / "ray_jobs.py", cluster.address, at],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=cluster.env,
            text=True,
        )
        self._answer()

    def ask(self, *words: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("the client of Ray Jobs has ended")
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Ranks:
    """Ranks that say when they began, each into a file of its own, and wait to be ended."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.folder = Path(tempfile.mkdtemp(prefix="ranks-"))

    def script(self, rank: str) -> list[str]:
        return ["sh", "-c", f"date +%s%N > {self.folder}/{rank}; exec sleep 600", "rank"]

    def begun(self) -> list[float]:
        """When each began, once all have."""

        def all_there() -> list[float]:
            said = [path.read_text() for path in self.folder.iterdir()]
            whole = [int(text) / 1e9 for text in said if text.endswith("\n")]
            return whole if len(whole) == self.count else []

        return list(until(all_there, 120))

    def close(self) -> None:
        shutil.rmtree(self.folder)


def by_runyard(yard: Yard, client: Client) -> dict[str, float]:
    ranks = Ranks(RANKS)
    began = time.time()
    job = yard.submit(
        ranks.script("$RANK"),
        gpu_count=PER_NODE,
        job_type="distributed",
        distributed={"nodes": NODES, "procs_per_node": PER_NODE, "placement": "spread"},
    )
    starts = ranks.begun()
    asked = time.time()
    yard.api("POST", f"/jobs/{job}/cancel?wait=60")
    told = time.time()
    free = client.ask("await_free")
    ranks.close()
    return {
        "first": min(starts) - began,
        "all": max(starts) - began,
        "told": told - asked,
        "free": free - asked,
    }


def by_ray_jobs(
    client: Client, count: int, command: Callable[[Ranks], list[str]], gpus: int
) -> Any:
    ranks = Ranks(count)
    began = time.time()
    ref = client.ask("submit", command(ranks), gpus)
    starts = ranks.begun()
    asked = time.time()
    client.ask("stop", ref)
    free = client.ask("await_free")
    until(lambda: client.ask("state", ref) == "STOPPED", 60)
    told = time.time()
    ranks.close()
    return {
        "first": min(starts) - began,
        "all": max(starts) - began,
        "told": told - asked,
        "free": free - asked,
    }


def gang_of_a_driver(python: Path) -> Callable[[Ranks], list[str]]:
    script = str(HERE / "peer_scripts" / "ray_driver_gang.py")
    return lambda ranks: [str(python), script, *ranks.script("$1")]


def measure_gangs(result: Measurement, yard: Yard, client: Client, python: Path) -> None:
    gang = gang_of_a_driver(python)
    taken: dict[str, list[dict[str, float]]] = {"runyard": [], "entry point": [], "gang": []}
    by_runyard(yard, client)  # once for everybody, so that nothing is cold
    by_ray_jobs(client, 1, lambda ranks: ranks.script("0"), RANKS)
    for _ in range(ROUNDS):  # in turn, so that what else the machine does hits all alike
        taken["runyard"].append(by_runyard(yard, client))
        taken["entry point"].append(by_ray_jobs(client, 1, lambda ranks: ranks.script("0"), RANKS))
        taken["gang"].append(by_ray_jobs(client, RANKS, gang, 0))
    p50 = {
        who: {what: median([one[what] for one in rounds]) for what in rounds[0]}
        for who, rounds in taken.items()
    }
    ours, entry, theirs = p50["runyard"], p50["entry point"], p50["gang"]
    words = f"{NODES} x {PER_NODE} ranks"
    result.add(f"runyard, submit to first line of {words}, p50", ours["first"], "s")
    result.add(f"runyard, submit to first line of the last of {words}, p50", ours["all"], "s")
    result.add("ray jobs, submit to first line of one process, p50", entry["first"], "s")
    result.add(f"ray jobs, the last of {words} by its driver, p50", theirs["all"], "s")
    result.add("runyard over ray jobs, first line", ours["first"] / entry["first"], "x", "<= 1")
    result.add("runyard over ray jobs, all ranks", ours["all"] / theirs["all"], "x", "<= 1")
    result.add("runyard, cancel to all GPUs free, p50", ours["free"], "s")
    result.add("runyard, cancel to `cancelled` proven, p50", ours["told"], "s")
    result.add("ray jobs, stop of one process to all GPUs free, p50", entry["free"], "s")
    result.add("ray jobs, stop of a gang to all GPUs free, p50", theirs["free"], "s")
    result.add("runyard over ray jobs, one process, GPUs free", ours["free"] / entry["free"], "x")
    result.add(
        "runyard over ray jobs, gang, GPUs free", ours["free"] / theirs["free"], "x", "<= 1"
    )


def measure_starts(result: Measurement, yard: Yard) -> None:
    """Of single jobs, by whether a process of Ray's was waiting on the node."""
    taken: dict[str, list[float]] = {"waiting": [], "started for it": []}
    for _ in range(STARTS):
        ranks = Ranks(1)
        began = time.time()
        job = yard.submit(ranks.script("0"))
        first = ranks.begun()[0] - began
        yard.api("POST", f"/jobs/{job}/cancel?wait=60")
        ranks.close()
        journal = yard.folder / "data" / "attempts" / f"{job}.1" / "journal"
        fresh = b'"fresh":true' in journal.read_bytes()
        taken["started for it" if fresh else "waiting"].append(first)
        time.sleep(PAUSE_S)
    for how, values in taken.items():
        if values:
            words = (
                f"runyard, submit to first line of one process, Ray's {how} ({len(values)}), p50"
            )
            result.add(words, median(values), "s")


def bridge_of(yard: Yard) -> int:
    assert yard.server is not None
    for pid in descendants(yard.server.pid):
        if b"bridge_main.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise RuntimeError("the server has no bridge")


def copied_log(yard: Yard, bridge: int) -> tuple[float, float]:
    """MB/s of a log from its first byte here to its last, and the most memory meanwhile."""
    most = pss_mb([bridge])
    job = yard.submit([sys.executable, "-c", WRITER, str(LOG_MB)])
    log = yard.folder / "data" / "attempts" / f"{job}.1" / "out.log"
    until(log.exists, 60)
    first = time.monotonic()
    while log.stat().st_size < LOG_MB * 1_000_000:
        most = max(most, pss_mb([bridge]))
        time.sleep(0.05)
    copied = time.monotonic() - first
    yard.wait(job, "completed", 120)
    return LOG_MB / copied, most


def measure_log(result: Measurement, yard: Yard, client: Client) -> None:
    bridge = bridge_of(yard)
    before = pss_mb([bridge])
    rate, most = copied_log(yard, bridge)
    after = pss_mb([bridge])
    again_rate, again_most = copied_log(yard, bridge)
    ours = median([rate, again_rate])
    result.add(f"runyard, log of {LOG_MB} MB from a node", ours, "MB/s")
    result.add("bridge before, PSS", before, "MB")
    result.add("bridge meanwhile, most", max(most, again_most), "MB")
    result.add(f"bridge after {LOG_MB} MB, PSS", after, "MB")
    result.add(f"bridge after {2 * LOG_MB} MB, PSS", pss_mb([bridge]), "MB")
    result.add("bridge, growth", max(most, again_most) - before, "MB", "<= 20")
    result.add("bridge, growth by the second log", pss_mb([bridge]) - after, "MB", "<= 5")
    ref = client.ask("submit", [sys.executable, "-c", WRITER, str(LOG_MB_OF_RAY)], 0)
    count, seconds = client.ask("follow", ref)
    theirs = count / 1e6 / seconds
    result.add(f"ray jobs, log of {count / 1e6:.0f} MB followed", theirs, "MB/s")
    result.add("runyard over ray jobs, log", ours / theirs, "x", ">= 1")


@contextmanager
def cluster_of(python: Path) -> Iterator[Any]:
    sys.path.insert(0, str(TESTS))
    made = importlib.import_module("ray_cluster").RayCluster
    cluster = made(first=71, python=str(python), dashboard_port=free_port())
    try:
        yield cluster.start(NODES)
    finally:
        cluster.stop()


def main() -> None:
    result = begin((__doc__ or "").partition("\n")[0])
    python = peers.python_of("ray")
    if python is None:
        print("  the peer ray is not installed")
        return
    with cluster_of(python) as cluster:
        client = Client(python, cluster)
        settings = {
            "executors": "ray",
            "ray_address": cluster.address,
            "ray_python": str(python),
            "ray_token_path": str(cluster.token_path),
            "log_cap_mb": "400",
        }
        try:
            with Yard(max_concurrent=8, **settings) as yard:
                measure_gangs(result, yard, client, python)
                measure_starts(result, yard)
                measure_log(result, yard, client)
        finally:
            client.close()
    result.keep()


if __name__ == "__main__":
    main()
