"""How long does it take to tell why an attempt failed, from its log alone?"""

from __future__ import annotations

import time

from measurement import begin, median, percentile, quick
from runyard.domain.failures.classify import classify
from runyard.domain.failures.evidence import Evidence, RankLog, lines_of

ROUNDS = 5 if quick() else 60
END = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 41, in <module>\n    main()\n'
    "RuntimeError: CUDA error: an illegal memory access was encountered"
)
READ = 520  # lines that the engine reads of one log
MOST = 4000  # that are ever looked at


def ordinary(number: int) -> str:
    """A line as trainings write them; of five kinds."""
    return (
        f"step {number} loss 0.3{number % 97:02d} lr 1e-4 tokens/s 12000",
        f"{{'loss': 0.5{number % 89:02d}, 'grad_norm': 1.2, 'learning_rate': 4e-5, 'epoch': 0.6}}",
        f"2026-03-11 04:12:{number % 60:02d},551 - INFO - trainer - finished batch {number}",
        f"\rEpoch 1:  12%|█▏        | {number}/9840 [00:41<05:02,  2.86it/s, train_loss=1.82]",
        f"[rank{number % 8}]: INFO some words about connections to the dataset {number}",
    )[number % 5]


def of_lines(count: int) -> Evidence:
    text = "\n".join([*(ordinary(number) for number in range(count)), END])
    return Evidence(exit_code=1, logs=(RankLog(tail=lines_of(text)),))


def taken_ms(evidence: Evidence, rounds: int = ROUNDS) -> list[float]:
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        classify(evidence)
        taken.append((time.process_time() - began) * 1e3)
    return taken


def main() -> None:
    result = begin(__doc__ or "")
    classify(of_lines(10))
    for name, count, goal in (
        ("as the engine reads it", READ, "<= 20"),
        ("as long as can be", MOST, "<= 20"),
    ):
        taken = taken_ms(of_lines(count))
        result.add(f"a log {name}, {count} lines, p50", median(taken), "ms", goal)
        result.add(f"a log {name}, {count} lines, p95", percentile(taken, 95), "ms")
    hostile = {
        "a line of 10 MB": "Error: " * 1_500_000,
        "4,000 unknown exceptions": "\n".join(
            f'Traceback (most recent call last):\n  File "a", line {n}\nOdd: x'
            for n in range(4000)
        ),
        "4,000 lines of one failure": "\n".join(
            ["RuntimeError: CUDA error: device-side assert triggered"] * 4000
        ),
    }
    for name, text in hostile.items():
        evidence = Evidence(exit_code=1, logs=(RankLog(tail=lines_of(text)),))
        result.add(f"{name}, most", max(taken_ms(evidence, 5)), "ms", "<= 500")
    result.keep()


if __name__ == "__main__":
    main()
