"""How large, how fast and how light is the web page, in a real browser on a real server?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from measurement import Measurement, begin, median, percentile, quick
from yard_under_test import Yard, until

BENCH = Path(__file__).resolve().parent.parent / "web" / "bench"
FEW, MANY = (100, 500) if quick() else (100, 10_000)
TIMES = 3 if quick() else 12
CHARTS, POINTS = (20, 2_000) if quick() else (20, 100_000)
LINES = 20_000 if quick() else 1_000_000
TABS = 12
CHART_SECONDS = 6 if quick() else 30

# All points at once, then one a second of each metric.
CURVES = """
import json, math, os, random, sys, time
count, charts = int(sys.argv[1]), int(sys.argv[2])
draw = random.Random(1)
def line(step):
    falls = 3 / (1 + step / 9000)
    told = {f"metric_{n}": round(falls + draw.gauss(0, 0.05) + n, 4) for n in range(charts)}
    return json.dumps({"step": step, **told}) + "\\n"
with open(os.environ["RUNYARD_METRICS_FILE"], "a") as file:
    for step in range(count):
        file.write(line(step))
    file.flush()
    while True:
        time.sleep(1)
        count += 1
        file.write(line(count))
        file.flush()
"""
LONG_LOG = """
import sys
for n in range(int(sys.argv[1])):
    sys.stdout.write(f"step {n} loss {3 / (1 + n / 9000):.4f} of a training that says a lot\\n")
"""


def ask(script: str, yard: Yard, **more: Any) -> dict[str, Any]:
    told = {"url": f"http://127.0.0.1:{yard.port}", "key": yard.http.key, "times": TIMES, **more}
    command = ["node", str(BENCH / f"{script}.mjs"), json.dumps(told)]
    yard.http.close()  # the server closes what nobody used for a while
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{script}: {done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def list_ms(yard: Yard) -> float:
    """The page of the list that the browser asks for, as the server answers it."""
    client = yard.client()
    times = []
    for _ in range(TIMES * 3):
        began = os.times().elapsed
        status, _ = client.request("GET", "/api/v1/training/jobs?limit=50&curves=true")
        times.append((os.times().elapsed - began) * 1000)
        assert status == 200
    return percentile(times, 95)


def lists(result: Measurement) -> None:
    """The first page, and lists of few and of many jobs."""
    with Yard(max_concurrent=1) as yard:
        yard.api("POST", "/system/stop-queue")
        yard.submit_many(["true"], FEW)
        few = ask("first_page", yard)
        result.add("first page, gzip", few["bytes"] / 1000, "kB", "<= 230")
        result.add("first page, files", few["files"], "")
        yard.submit_many(["true"], MANY - FEW)
        many, server = ask("first_page", yard), list_ms(yard)
    result.add("first rows on screen, p50", median(few["times"]), "ms")
    result.add("first rows on screen, p95", percentile(few["times"], 95), "ms", "<= 1000")
    name = f"first rows with {MANY:,} jobs"
    result.add(f"{name}, p50", median(many["times"]), "ms")
    result.add(f"{name}, p95", percentile(many["times"], 95), "ms", "<= 1000")
    ratio = median(many["times"]) / median(few["times"])
    result.add(f"{name}, p50 over {FEW} jobs", ratio, "x", "<= 1.2")
    result.add(f"the list of {MANY:,} jobs from the server, p95", server, "ms", "<= 50")


def events(result: Measurement) -> None:
    """A new job in the list, a new line in the log, and both in many tabs."""
    with Yard(max_concurrent=2) as yard:
        source = yard.folder / "source"
        source.touch()
        writer = yard.submit(["tail", "-n", "+1", "-f", str(source)], grace_s=0)
        yard.wait(writer, "running")
        source.write_text("it begins\n")
        found = ask("event_to_pixel", yard, writer=writer, fifo=str(source), times=TIMES * 3)
        result.add("submit to its row, p50", median(found["rows"]), "ms")
        result.add("submit to its row, p95", percentile(found["rows"], 95), "ms", "<= 500")
        result.add("line written to seen in the log, p50", median(found["lines"]), "ms")
        result.add(
            "line written to seen in the log, p95", percentile(found["lines"], 95), "ms", "<= 500"
        )
        tabs = ask("many_tabs", yard, tabs=TABS, times=max(2, TIMES // 2))
    heard = [one for one in tabs["heard"] if one is not None]
    result.add(
        f"{TABS} tabs: updates that were shown",
        100 * len(heard) / len(tabs["heard"]),
        "%",
        ">= 100",
    )
    result.add(
        f"{TABS} tabs: submit to its row in each, p95", percentile(heard, 95), "ms", "<= 500"
    )
    result.add(f"{TABS} tabs: one more page loads", tabs["loadedBeside"], "ms", "<= 1000")
    result.add(f"{TABS} tabs: all loaded again at once", tabs["reloadedAll"], "ms")


def charts(result: Measurement) -> None:
    with Yard(max_concurrent=2) as yard:
        command = [sys.executable, "-c", CURVES, str(POINTS), str(CHARTS)]
        job = yard.submit(command, grace_s=0)

        def read() -> bool:
            told = yard.api("GET", f"/jobs/{job}/metrics?keys=metric_19&points=100")["series"]
            return max(told.get("metric_19", {}).get("steps", []), default=0) >= POINTS

        until(read, 900, 1.0)
        found = ask("live_charts", yard, job=job, charts=CHARTS, seconds=CHART_SECONDS)
    result.add(f"{CHARTS} charts of {POINTS:,} points, open", found["opened"], "ms")
    result.add("of these on screen and moving", found["moved"], "", f">= {CHARTS}")
    result.add("browser with a page at rest", found["idle"], "% of a core")
    result.add(f"browser with {CHARTS} live charts", found["busy"], "% of a core", "<= 30")


def long_log(result: Measurement) -> None:
    with Yard(max_concurrent=2) as yard:
        job = yard.submit([sys.executable, "-c", LONG_LOG, str(LINES)])
        yard.wait(job, "completed", 300)
        found = ask("long_log", yard, job=job, lines=LINES)
    result.add(f"a log of {LINES:,} lines, click to last line, p50", median(found["clicks"]), "ms")
    result.add(
        f"a log of {LINES:,} lines, click to last line, p95",
        percentile(found["clicks"], 95),
        "ms",
        "<= 300",
    )
    result.add("the same by its address, empty cache, p50", median(found["addresses"]), "ms")


def main() -> int:
    result = begin(__doc__ or "")
    parts = {"lists": lists, "events": events, "charts": charts, "long_log": long_log}
    chosen = [name for name in parts if name in sys.argv] or list(parts)
    broken = []
    for name in chosen:
        try:
            parts[name](result)
        except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            broken.append(name)
    if chosen == list(parts):
        result.keep()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
