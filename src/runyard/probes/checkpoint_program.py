"""Checks checkpoints by a program of its own: slow disks and odd files cannot harm the server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runyard.probes.base import CheckedCheckpoint

_PROGRAM = Path(__file__).resolve().parent / "checkpoint_check" / "__main__.py"
_START_S = 15.0  # on a machine that is busy


class CheckpointProgram:
    """The port CheckpointCheck by a niced child."""

    def check(
        self, paths: Sequence[str], *, seconds: float, settle_s: float = 0.0
    ) -> list[CheckedCheckpoint]:
        if not paths:
            return []
        asked = json.dumps({"paths": list(paths), "seconds": seconds, "settle_s": settle_s})
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-B", str(_PROGRAM)],
                input=asked.encode(),
                capture_output=True,
                timeout=seconds + _START_S,
                check=False,
                cwd="/",
                env={"LANG": "C.UTF-8"},
            )
            printed = done.stdout
        except subprocess.TimeoutExpired as expired:
            printed = expired.stdout or b""
        except OSError:
            return []
        found = (_checked(line) for line in printed.splitlines())
        return [one for one in found if one is not None]


def _checked(line: bytes) -> CheckedCheckpoint | None:
    try:
        told: dict[str, Any] = json.loads(line)
        return CheckedCheckpoint(**told)
    except (ValueError, TypeError):
        return None  # the program ended in the middle of it
