"""Starts a server with trainings of every kind and has a browser take pictures of its pages.

`--keep` leaves the server running until Ctrl-C, to look at it oneself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path.insert(0, str(REPOSITORY / "benchmarks"))

from yard_under_test import BASE, KeepAlive, Yard, until  # noqa: E402

PICTURES = REPOSITORY / "docs" / "images"
TRAINING = ["python3", "train.py"]
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # a python3 that has runyard
ROOM = {"cpu_cores": 0.25, "memory_gb": 0.5, "gpu_count": 0, "max_retries": 2}


class Stage:
    """The yard that is shown, with two people who use it."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.folder = yard.folder / "project"
        self.folder.mkdir()
        shutil.copy(HERE / "training.py", self.folder / "train.py")
        self.people = {name: self._person(name) for name in ("mei", "lena")}

    def _person(self, name: str) -> KeepAlive:
        client = self.yard.client()
        client.key = self.yard.api("POST", "/keys", {"name": name, "role": "admin"})["secret"]
        return client

    def submit(self, owner: str, name: str, *flags: str, **fields: object) -> str:
        command = [*TRAINING, "--model", name.split("-")[0], *flags]
        body = {"name": name, "command": command, **ROOM, **fields}
        body["working_dir"] = str(self.folder)
        body["env_vars"] = {"PATH": PATH}
        status, answer = self.people[owner].request("POST", f"{BASE}/jobs", body)
        if status >= 300:
            raise RuntimeError(f"{name}: {status} {answer}")
        return str(answer["job_id"])

    def reach(self, job: str, *statuses: str, seconds: float = 120) -> None:
        until(lambda: self.yard.api("GET", f"/jobs/{job}")["status"] in statuses, seconds, 0.2)

    def advance(self, job: str, step: int, seconds: float = 180) -> None:
        def there() -> bool:
            told = self.yard.api("GET", f"/jobs/{job}/metrics?keys=loss&points=100")["series"]
            return max(told.get("loss", {}).get("steps", []), default=0) >= step

        until(there, seconds, 0.5)


def ended(stage: Stage) -> dict[str, str]:
    """What went before: two that completed, one that failed for good, one that was cancelled."""
    quick = ("--steps", "900", "--done", "900")
    for owner, name, seed in (("mei", "bert-small-sst2", "3"), ("lena", "unet-cells-256", "5")):
        stage.reach(
            stage.submit(owner, name, *quick, "--seed", seed, labels={"team": "vision"}),
            "completed",
        )
    failed = stage.submit(
        "lena", "wav2vec-cv17-zh", "--data", "/data/common-voice-17/zh/train.tsv"
    )
    stage.reach(failed, "failed")
    dropped = stage.submit("mei", "dqn-breakout-a", "--pace", "0.2", "--done", "500")
    stage.advance(dropped, 400)
    stage.people["mei"].request("POST", f"{BASE}/jobs/{dropped}/cancel")
    stage.reach(dropped, "cancelled")
    return {"failed": failed, "cancelled": dropped}


def running(stage: Stage) -> dict[str, str]:
    """Four that run, one of them after it was repaired."""
    for name, expression, level in (
        ("loss-still-high", "loss > 2.2 for 10s", "error"),
        ("accuracy-low", "accuracy < 0.8 for 10s", "warning"),
    ):
        stage.yard.api(
            "POST", "/alert-rules", {"name": name, "expression": expression, "level": level}
        )
    shown = {
        "repaired": stage.submit(
            "mei",
            "resnet50-imagenette",
            *("--learning_rate", "0.004", "--diverges_at", "1170", "--done", "1500"),
            *("--steps", "9000", "--pace", "0.6", "--seed", "11"),
        ),
        "first": stage.submit(
            "mei",
            "vit-tiny-cifar10",
            *("--done", "2600", "--steps", "6000", "--pace", "0.5", "--floor", "0.6"),
            labels={"team": "vision"},
        ),
        "second": stage.submit(
            "lena",
            "gpt-nano-stories",
            *("--done", "1900", "--steps", "12000", "--pace", "0.4", "--start", "6.5"),
            *("--floor", "1.4", "--seed", "23"),
        ),
        "third": stage.submit(
            "lena",
            "clip-flickr-distil",
            *("--done", "900", "--steps", "8000", "--pace", "0.7", "--start", "4.1"),
            *("--seed", "31"),
        ),
    }
    return shown


def waiting(stage: Stage, shown: dict[str, str]) -> None:
    stage.submit("mei", "vit-tiny-cifar100", priority="high", labels={"team": "vision"})
    stage.submit("lena", "gpt-nano-eval", depends_on=[{"job": shown["second"]}])
    stage.submit("lena", "clip-flickr-large", cpu_cores=1.5, memory_gb=4)
    stage.submit("mei", "sweep-lr-1e-4", "--learning_rate", "1e-4", priority="low")
    stage.submit("mei", "sweep-lr-3e-4", priority="low", hold=True)


def take(yard: Yard, key: str, shown: dict[str, str]) -> int:
    told = {
        "url": f"http://127.0.0.1:{yard.port}",
        "key": key,
        "jobs": shown,
        "into": str(PICTURES),
    }
    script = REPOSITORY / "web" / "pictures" / "take.mjs"
    return subprocess.run(["node", script, json.dumps(told)], check=False).returncode


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    with Yard(max_concurrent=4, node_name="studio", monitoring_interval="2") as yard:
        stage = Stage(yard)
        shown = ended(stage) | running(stage)
        for name, step in (("repaired", 1500), ("first", 2600), ("second", 1900), ("third", 900)):
            stage.advance(shown[name], step)
        waiting(stage, shown)
        key = stage.people["mei"].key
        if "--keep" in sys.argv:
            print(
                json.dumps({"url": f"http://127.0.0.1:{yard.port}", "key": key, "jobs": shown}),
                flush=True,
            )
            while True:
                time.sleep(1)
        time.sleep(180)  # a pace and an estimate need some looks
        return take(yard, key, shown)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(0)
