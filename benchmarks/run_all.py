"""Runs every question, one after the other, then prints the table. `--quick` is a smoke run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
QUESTIONS = (
    "submit_to_start",
    "finished_rate",
    "accepted_rate",
    "deep_queue",
    "idle_cost",
    "adoption",
    "cli_start",
)


def main(arguments: list[str]) -> int:
    chosen = [word for word in arguments if word in QUESTIONS] or list(QUESTIONS)
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
