"""task-spooler: `tsp -k` sends SIGTERM to the process group of a job."""

from __future__ import annotations

import os
from pathlib import Path

from conversation import hold, output_of


class TaskSpooler:
    def __init__(self, folder: Path) -> None:
        os.environ |= {"TS_SOCKET": str(folder / "socket"), "TMPDIR": str(folder)}

    def start(self) -> None:
        output_of("tsp", "-S", 8)

    def submit(self, command: list[str]) -> str:
        return output_of("tsp", *command).strip()

    def cancel(self, ref: str) -> None:
        output_of("tsp", "-k", ref)

    def state(self, ref: str) -> tuple[str, bool]:
        state = output_of("tsp", "-s", ref).strip()
        return state, state == "finished"

    def close(self) -> None: ...


if __name__ == "__main__":
    hold(TaskSpooler)
