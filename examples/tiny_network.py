"""A network small enough to train in plain Python, and the record that tests compare with."""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path

HIDDEN = 8
BATCH = 16


class TinyNetwork:
    """Learns y = sin(3x) with one hidden layer of tanh, by stochastic gradient descent."""

    def __init__(self, seed: int = 1) -> None:
        self.chance = random.Random(seed)
        self.inner = [(self.chance.gauss(0, 1), self.chance.gauss(0, 1)) for _ in range(HIDDEN)]
        self.outer = [self.chance.gauss(0, 0.5) for _ in range(HIDDEN)]
        self.shift = 0.0

    def guess(self, x: float) -> float:
        hidden = (math.tanh(slope * x + offset) for slope, offset in self.inner)
        return sum(weight * h for weight, h in zip(self.outer, hidden, strict=True)) + self.shift

    def learn(self, rate: float) -> float:
        """One step over a batch; the mean squared error before it."""
        total = 0.0
        for _ in range(BATCH):
            x = self.chance.uniform(-1, 1)
            error = self.guess(x) - math.sin(3 * x)
            total += error * error
            self._descend(x, 2 * error * rate / BATCH)
        return total / BATCH

    def validate(self) -> float:
        points = [-1 + place / 20 for place in range(41)]
        return sum((self.guess(x) - math.sin(3 * x)) ** 2 for x in points) / len(points)

    def _descend(self, x: float, slope: float) -> None:
        for place, (gain, offset) in enumerate(self.inner):
            h = math.tanh(gain * x + offset)
            inside = slope * self.outer[place] * (1 - h * h)
            self.outer[place] -= slope * h
            self.inner[place] = gain - inside * x, offset - inside
        self.shift -= slope


class Truth:
    """What really happened, for those who compare it with what was read from the log."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.steps: list[tuple[float, int]] = []
        self.losses: list[tuple[int, float]] = []

    def step(self, number: int) -> None:
        self.steps.append((time.time(), number))

    def loss(self, number: int, value: float) -> None:
        """A loss that the program wrote down, as it wrote it."""
        self.losses.append((number, value))

    def save(self) -> None:
        if self.path:
            record = {"steps": self.steps, "losses": self.losses}
            Path(self.path).write_text(json.dumps(record), encoding="utf-8")


def arguments(description: str, **more: float) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=150, help="steps in all")
    parser.add_argument(
        "--sleep", type=float, default=0.02, help="seconds of waiting in each step"
    )
    parser.add_argument("--truth", metavar="FILE", help="write what really happened to FILE")
    for name, default in more.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()
