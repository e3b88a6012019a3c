"""Run by huey's own interpreter: `true` jobs per second with two process workers on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from huey import SqliteHuey

huey = SqliteHuey(filename=os.path.abspath("huey.db"))


@huey.task()
def run(number: int) -> int:
    code = subprocess.call(["true"])
    with open("done", "ab", buffering=0) as done:
        done.write(b".")
    return code + 0 * number


def main(count: int) -> None:
    open("done", "wb").close()
    consumer = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "huey.bin.huey_consumer",
            "huey_rate.huey",
            "-w",
            "2",
            "-k",
            "process",
        ],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        run(0)
        while os.path.getsize("done") < 1:
            time.sleep(0.01)
        began = time.monotonic()
        for number in range(count):
            run(number)
        while os.path.getsize("done") < count + 1:
            time.sleep(0.005)
        print(count / (time.monotonic() - began))
    finally:
        consumer.terminate()
        consumer.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
