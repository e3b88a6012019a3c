"""What is lost when the daemons are killed with -9 at 1,000 random instants of a job's life?

`--kills 1000` says how often, `--minutes 30` how long at most; `--seed 7` chooses the same again.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measurement import Measurement, begin, quick

TESTS = Path(__file__).resolve().parent.parent / "tests"
TELL_EVERY = 50
# Nothing is removed while it is looked for.
SETTINGS = {"RUNYARD_HISTORY_SIZE": "1000000"}


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20 if quick() else 1000)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def module(name: str) -> Any:
    for place in (TESTS, TESTS / "chaos"):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    return importlib.import_module(name)


def measure(options: argparse.Namespace, folder: Path) -> tuple[Any, Any, int]:
    """(the storm, its verdict, innocent processes that were touched)."""
    yards, storm = module("yards"), module("storm")
    yard = yards.RunningYard(folder / "yard", max_concurrent=16, env=SETTINGS).start()
    truth = yards.Truth(folder / "truth")
    strangers = storm.Strangers()
    points = module("kill_points").KillPoints(yard, folder, random.Random(options.seed), truth)
    began = time.monotonic()

    def enough(number: int) -> bool:
        passed = time.monotonic() - began
        if number == 1 or number % TELL_EVERY == 0:
            print(f"  {number} kills, {len(points.codes)} jobs, {passed:.0f} s", flush=True)
        if points.codes and (number <= 3 or number % TELL_EVERY == 0):
            strangers.imitate(list(points.codes)[-1], yard.data)
        return bool(passed > options.minutes * 60)

    try:
        points.strike(options.kills, enough)
        verdict = points.verdict()
        return points, verdict, strangers.harmed()
    finally:
        strangers.close()
        yard.stop()
        truth.close()


def main() -> None:
    options = asked()
    result = begin((__doc__ or "").splitlines()[0])
    print(f"  seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="runyard-kills-", ignore_cleanup_errors=True) as name:
        points, verdict, harmed = measure(options, Path(name))
    tell_all(result, points, verdict, harmed)
    for words in verdict.untrue[:5]:
        print(f"  broken: {words[:1500]}")
    result.keep()


def tell_all(result: Measurement, points: Any, verdict: Any, harmed: int) -> None:
    for stage, count in points.struck.items():
        result.add(f"kills during {stage}", count, "")
    for target, count in sorted(points.killed.items()):
        result.add(f"kills of {target}", count, "")
    result.add("kills in all", sum(points.killed.values()), "")
    result.add("acknowledged jobs", verdict.jobs, "")
    result.add("of these lost", len(verdict.lost), "", "<= 0")
    result.add("attempts run twice", len(verdict.run_twice), "", "<= 0")
    result.add("innocent processes touched", harmed, "", "<= 0")
    result.add("processes that outlived their job", int(verdict.outlived), "", "<= 0")
    share = 100 * verdict.codes_kept / max(1, verdict.codes_expected)
    result.add(f"exit codes kept, of {verdict.codes_expected} ends", share, "%", ">= 100")
    result.add("other promises broken", len(verdict.untrue), "", "<= 0")


if __name__ == "__main__":
    main()
