"""The prefetch program as a real process, with a cache and a link directory of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from runyard.prefetch import plan as plans

QUICK = {"tries": 4, "timeout_s": 30.0, "backoff_s": 0.05}


class Program:
    """One run of it; `env` replaces the environment but for what every process has."""

    def __init__(self, folder: Path, *items, cache: Path, env=None, links=None, **options) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.links = links or folder / "links"
        self.progress_file = folder / "progress.json"
        self.plan = plans.Plan(
            cache_dir=str(cache),
            link_dir=str(self.links),
            items=tuple(plans.Item(one) if isinstance(one, str) else one for one in items),
            progress_file=str(self.progress_file),
            **{**QUICK, **options},
        )
        self.plan_file = folder / "plan.json"
        plans.write(self.plan, self.plan_file)
        base = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self.env = {**base, **(env or {})}
        self.process: subprocess.Popen | None = None
        self.lines: list[dict] = []

    def start(self) -> Program:
        self.process = subprocess.Popen(
            plans.command(self.plan_file),
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self

    def wait(self, seconds: float = 90) -> Program:
        out, self.errors = self.process.communicate(timeout=seconds)
        self.lines = [json.loads(line) for line in out.splitlines()]
        return self

    def run(self) -> Program:
        return self.start().wait()

    def end(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.communicate()

    @property
    def status(self) -> int:
        return self.process.returncode

    @property
    def outcome(self) -> dict:
        return self.lines[-1]

    @property
    def items(self) -> dict[str, dict]:
        return {one["name"]: one for one in self.outcome["items"]}

    def progress(self) -> plans.Progress | None:
        return plans.read_progress(self.progress_file)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def text(self) -> str:
        """Everything it let others see."""
        seen = [self.errors, json.dumps(self.lines)]
        seen.append(self.progress_file.read_text() if self.progress_file.exists() else "")
        return "\n".join(seen)
