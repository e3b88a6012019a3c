"""A training that fails in a chosen way, with the texts that real programs write, and resumes.

Each start appends a line to --history: batch, accumulation, learning rate, first step.
"""

import argparse
import json
import os
import sys
import time
import zipfile
from pathlib import Path

OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total "
    "capacity of 79.10 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process "
    "has 77.90 GiB memory in use."
)


def save(step: int) -> None:
    folder = Path(os.environ["RUNYARD_CHECKPOINT_DIR"])
    part = folder / "part"
    with zipfile.ZipFile(part, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/data/0", json.dumps({"step": step}))
    part.rename(folder / f"step-{step:06d}.pt")


def first_step() -> int:
    path = os.environ.get("RUNYARD_RESUME_FROM")
    if not path:
        return 0
    with zipfile.ZipFile(path) as archive:
        return int(json.loads(archive.read("archive/data/0"))["step"])


def scale(asks: str) -> float:
    """As a program does that imports runyard.report, or as one in any language can."""
    if asks == "environment":
        return float(os.environ["RUNYARD_BATCH_SCALE"])
    from runyard import report

    return report.batch_scale()


def fail(exception: str) -> None:
    print("Traceback (most recent call last):", file=sys.stderr)
    print('  File "train.py", line 88, in <module>', file=sys.stderr)
    print("    loss = model(batch)", file=sys.stderr)
    print(exception, file=sys.stderr, flush=True)
    sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--fits", type=int, default=10**6)
    parser.add_argument("--diverges_above", type=float, default=10**6)
    parser.add_argument("--fails_once", default="")
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--asks", choices=("no", "report", "environment"), default="no")
    asked = parser.parse_args()
    if asked.asks != "no":
        asked.batch_size = int(32 * scale(asked.asks))
    begin = first_step()
    starts = asked.history.read_text() if asked.history.exists() else ""
    with asked.history.open("a") as history:
        told = (asked.batch_size, asked.gradient_accumulation_steps, asked.learning_rate, begin)
        print(*told, file=history)
    for step in range(begin + 1, asked.steps + 1):
        time.sleep(0.01)
        if step == 12 and asked.batch_size > asked.fits:
            fail(OUT_OF_MEMORY.replace("2.50", f"{asked.batch_size * 2.5 / 32:.2f}"))
        if step == 12 and asked.fails_once and not starts:
            fail(asked.fails_once)
        bad = step >= 13 and asked.learning_rate > asked.diverges_above
        loss = float("nan") if bad else 4 / (1 + step)
        print(f"iter {step}: loss {loss:.4f}, time 10.00ms", flush=True)
        if bad and step == 18:
            fail("FloatingPointError: Loss is NaN")
        if step % 5 == 0:
            save(step)
    print("done", flush=True)


main()
