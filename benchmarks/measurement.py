"""Figures of one question: measured, printed against their goals, kept as JSON."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass
class Figure:
    """One measured value. `goal` is a limit: '<= 4' or '>= 200'; '' when there is none."""

    name: str
    value: float
    unit: str
    goal: str = ""

    @property
    def reached(self) -> bool | None:
        if not self.goal:
            return None
        sign, limit = self.goal.split()
        return self.value <= float(limit) if sign == "<=" else self.value >= float(limit)


@dataclass
class Measurement:
    question: str
    figures: list[Figure] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str, goal: str = "") -> None:
        figure = Figure(name, round(value, 4), unit, goal)
        self.figures.append(figure)
        verdict = {True: "reached", False: "SHORT", None: ""}[figure.reached]
        wanted = f"goal {goal}" if goal else ""
        print(f"  {name:<46} {figure.value:>12,.3f} {unit:<12} {wanted:<16} {verdict}", flush=True)

    def keep(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        name = Path(sys.argv[0]).stem
        text = json.dumps({**asdict(self), "machine": machine(), "at": time.time()}, indent=1)
        (RESULTS / f"{name}.json").write_text(text + "\n")


def begin(question: str) -> Measurement:
    print(question, flush=True)
    return Measurement(question)


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


median = statistics.median


def machine() -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "disk_free_gb": round(shutil.disk_usage("/").free / 1e9),
    }


def quick() -> bool:
    """A smoke run: everything is done once, nothing is worth quoting."""
    return "--quick" in sys.argv
