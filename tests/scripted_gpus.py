"""GPUs that are nothing but a file: an `nvidia-smi` that tells what is written in it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_PROGRAM = """#!/bin/sh
case "$1" in
--query-gpu=index,uuid,memory.used)
    while read index uuid used; do echo "$index, $uuid, $used"; done <'{state}' ;;
--query-gpu=index,uuid,name,memory.total)
    while read index uuid used; do echo "$index, $uuid, Scripted, 81559"; done <'{state}' ;;
--query-compute-apps=gpu_uuid,pid)
    cat '{users}' ;;
*)  exit 1 ;;
esac
"""


class ScriptedGpus:
    """`path` is the PATH of a process for which these are the GPUs of the machine."""

    def __init__(self, folder: Path, count: int = 4, used_mb: int = 10) -> None:
        self.name = secrets.token_hex(4)
        self._programs = folder / "bin"
        self._programs.mkdir(parents=True)
        self._state = folder / "gpus"
        self._users = folder / "users"
        program = self._programs / "nvidia-smi"
        program.write_text(_PROGRAM.format(state=self._state, users=self._users))
        program.chmod(0o755)
        self.path = f"{self._programs}:{os.environ['PATH']}"
        self.used_mb = dict.fromkeys(range(count), used_mb)
        self.use()
        self.users()

    def uuid(self, index: int) -> str:
        return f"GPU-{self.name}-{index}"

    def use(self, **used_mb: int) -> None:
        """From now on: `use(gpu0=5000)`."""
        self.used_mb |= {int(name.removeprefix("gpu")): mb for name, mb in used_mb.items()}
        _write(
            self._state,
            "".join(f"{index} {self.uuid(index)} {mb}\n" for index, mb in self.used_mb.items()),
        )

    def users(self, **pids: int) -> None:
        """Whose processes are on them: `users(gpu0=4711)`."""
        _write(
            self._users,
            "".join(
                f"{self.uuid(int(name.removeprefix('gpu')))}, {pid}\n"
                for name, pid in pids.items()
            ),
        )

    def fail(self) -> None:
        """It tells nothing any more, as with a driver that is in trouble."""
        self._state.unlink()


def _write(path: Path, text: str) -> None:
    """Whole at every moment."""
    draft = path.with_suffix(".tmp")
    draft.write_text(text)
    draft.rename(path)
