"""The application that huey's consumer runs: one task that starts `true`."""

from __future__ import annotations

import os
import subprocess

from huey import SqliteHuey

huey = SqliteHuey(filename=os.path.abspath("huey.db"))


@huey.task()
def run() -> int:
    code = subprocess.call(["true"])
    with open("done", "ab", buffering=0) as done:
        done.write(b".")
    return code
