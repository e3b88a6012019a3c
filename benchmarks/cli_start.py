"""How long does a command take to start, against a bare interpreter?"""

from __future__ import annotations

import subprocess
import sys
import time

from measurement import begin, median, percentile, quick
from yard_under_test import RUNYARD, Yard

ROUNDS = 3 if quick() else 25


def main() -> None:
    result = begin(__doc__ or "")
    commands: dict[str, list[str]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "runyard --help": [str(RUNYARD), "--help"],
        "runyard run -d -- true": [str(RUNYARD), "run", "-d", "--", "true"],
        "runyard ls": [str(RUNYARD), "ls"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    with Yard() as yard:
        for _ in range(ROUNDS):
            for name, command in commands.items():
                began = time.monotonic()
                subprocess.run(
                    command, env=yard.environment, stdout=subprocess.DEVNULL, check=True
                )
                taken[name].append((time.monotonic() - began) * 1e3)
    floor = median(taken["python -c pass"])
    for name, values in taken.items():
        result.add(f"{name}, p50", median(values), "ms")
        result.add(f"{name}, p95", percentile(values, 95), "ms")
    result.add("runyard --help, p50", median(taken["runyard --help"]) / 1e3, "s", "<= 0.3")
    submit = median(taken["runyard run -d -- true"])
    result.add("runyard run -d over a bare interpreter", submit / floor, "x", "<= 10")
    result.keep()


if __name__ == "__main__":
    main()
