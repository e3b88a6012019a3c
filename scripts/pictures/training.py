"""A training for the pictures: its curves are drawn by a formula, all else about it is real.

It reports, saves checkpoints, goes on from them, diverges when its learning rate is too high, and
fails when its data is not there, so that the pictures show what Runyard really does with these.
"""

from __future__ import annotations

import argparse
import math
import random
import time
import zipfile
from pathlib import Path

from runyard import report
from runyard.report import telling

SAVED_EVERY = 200
SHOWN_EVERY = 20


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="model")
    parser.add_argument("--data", default="")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--done", type=int, default=1200, help="steps that are done in a moment")
    parser.add_argument(
        "--pace", type=float, default=0.05, help="seconds for each step after that"
    )
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--diverges_at", type=int, default=0)
    parser.add_argument("--floor", type=float, default=0.4)
    parser.add_argument("--start", type=float, default=3.2)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def restored() -> int:
    given = report.resume_from()
    if given is None:
        return 0
    with zipfile.ZipFile(given) as file:
        return int(file.read("model/step"))


def save(step: int, val_loss: float) -> None:
    def write(path: str) -> None:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("model/data.pkl", random.Random(step).randbytes(400_000))
            file.writestr("model/step", str(step))

    report.save_checkpoint(write, f"checkpoints/step-{step}.pt", step, val_loss=val_loss)


class Curves:
    """Losses that fall as losses do: fast, then slowly, with noise that gets smaller."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.noise = given, random.Random(given.seed)

    def loss(self, step: int) -> float:
        falls: float = float(self.given.start) / math.pow(1 + step / 140, 0.62)
        return float(self.given.floor) + falls + self.noise.gauss(0, 0.03 + 0.05 * falls)

    def rate(self, step: int) -> float:
        warm = min(1.0, step / 300)
        falls = 0.5 + 0.5 * math.cos(math.pi * step / self.given.steps)
        return float(self.given.learning_rate) * warm * falls


def tell(given: argparse.Namespace, curves: Curves, step: int) -> float:
    loss = curves.loss(step)
    if given.diverges_at and given.learning_rate > 0.002 and step >= given.diverges_at:
        loss = float("nan")
    numbers = {"loss": loss, "learning_rate": curves.rate(step)}
    numbers["grad_norm"] = abs(curves.noise.gauss(1.1, 0.25)) + 4 / (1 + step / 60)
    if step % 50 == 0:
        numbers["val_loss"] = curves.loss(step) + 0.12
        numbers["accuracy"] = 0.93 - 0.83 / (1 + step / 260) + curves.noise.gauss(0, 0.004)
    telling.report(step=step, total=given.steps, **numbers)
    if step % SHOWN_EVERY == 0:
        clock = time.strftime("%H:%M:%S")
        rate = numbers["learning_rate"]
        print(
            f"{clock} INFO {given.model} step {step}/{given.steps} loss {loss:.4f} "
            f"lr {rate:.2e} grad_norm {numbers['grad_norm']:.2f}",
            flush=True,
        )
    return loss


def main() -> None:
    given = arguments()
    curves = Curves(given)
    begun = restored()
    if begun:
        print(f"resumed from step {begun}", flush=True)
    if given.data:
        print(f"loading {given.data}", flush=True)
        Path(given.data).read_bytes()
    for step in range(begun + 1, given.steps + 1):
        loss = tell(given, curves, step)
        if step % SAVED_EVERY == 0:
            save(step, loss)
        if loss != loss and step >= given.diverges_at + 10:
            raise FloatingPointError(f"loss is NaN at step {given.diverges_at}, training diverged")
        if report.should_stop():
            break
        time.sleep(0.004 if step < given.done else given.pace)


if __name__ == "__main__":
    main()
