"""Runs every question, one after the other, then prints the table. `--quick` is a smoke run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import peers

HERE = Path(__file__).resolve().parent
QUESTIONS = (
    "submit_to_start",
    "finished_rate",
    "accepted_rate",
    "deep_queue",
    "idle_cost",
    "watch_cost",
    "metric_flood",
    "adoption",
    "cancel_tree",
    "random_kills",
    "cli_start",
    "diagnosis_cost",
    "web_page",
    "cluster_pass",
)


# Only where there is a GPU and a python3 that can use it.
ON_A_GPU = ("gpu_cancel",)
# Only where Ray is among the peers that are installed.
WITH_RAY = ("ray_gang",)


def has_gpu() -> bool:
    probe = "import torch; raise SystemExit(not torch.cuda.is_available())"
    python = shutil.which("python3") or sys.executable
    return subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0


def main(arguments: list[str]) -> int:
    every = [*QUESTIONS, *WITH_RAY, *ON_A_GPU]
    chosen = [word for word in arguments if word in every]
    if not chosen:
        with_ray = WITH_RAY if peers.python_of("ray") else ()
        chosen = [*QUESTIONS, *with_ray, *(ON_A_GPU if has_gpu() else ())]
    flags = [word for word in arguments if word.startswith("-")]
    broken = []
    for question in chosen:
        done = subprocess.run([sys.executable, HERE / f"{question}.py", *flags], check=False)
        if done.returncode != 0:
            broken.append(question)
        print(flush=True)
    subprocess.run([sys.executable, HERE / "report.py"], check=False)
    if broken:
        print(f"did not finish: {', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
