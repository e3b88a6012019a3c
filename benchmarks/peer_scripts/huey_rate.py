"""Run by huey's own interpreter: `true` jobs per second with two process workers on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import huey_app


def main(count: int) -> None:
    done = Path("done")
    done.touch()
    consumer = subprocess.Popen(
        [sys.executable, "-m", "huey.bin.huey_consumer", "huey_app.huey", "-w2", "-kprocess"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        huey_app.run()
        while done.stat().st_size < 1:
            time.sleep(0.01)
        began = time.monotonic()
        for _ in range(count):
            huey_app.run()
        while done.stat().st_size < count + 1:
            time.sleep(0.005)
        print(count / (time.monotonic() - began))
    finally:
        consumer.terminate()
        consumer.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
