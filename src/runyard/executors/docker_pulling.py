"""The runner's part in pulling an image: only if needed, with how far it is, ended when asked.

The pull itself is a program of its own (docker_pull.py): it needs the engine's Python package,
which knows the registries' passwords and where people keep them. Standard library only.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from runyard.executors import docker_files
from runyard.supervisor import protocol
from runyard.supervisor.engine_http import Engine, EngineGone, EngineRefused

_LOOK_S = 0.1
_END_S = 5.0


def pull_if_needed(
    engine: Engine, plan: dict[str, Any], folder: str, check_stop: Callable[[], None]
) -> None:
    """Until the image is there. EngineRefused says why it will not be; what `check_stop` raises
    ends a pull under way."""
    image = str(plan["image"])
    while True:
        check_stop()
        try:
            if plan["pull"] == "never" or (plan["pull"] == "missing" and _is_here(engine, image)):
                return
            _pull(str(plan["socket"]), image, folder, check_stop)
            return
        except EngineGone:
            time.sleep(1.0)


def _is_here(engine: Engine, image: str) -> bool:
    try:
        engine.call("GET", f"/images/{quote(image, safe='/:@')}/json")
    except EngineRefused as error:
        if error.status == 404:
            return False
        raise
    return True


def _pull(socket_path: str, image: str, folder: str, check_stop: Callable[[], None]) -> None:
    import subprocess  # only here: it costs a start more than all the rest

    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "docker_pull.py")
    progress = f"{folder}/{protocol.PULL}"
    argv = [sys.executable, "-I", program, socket_path, image, progress]
    # Of its own session: a stop is ours to hear, and then to pass on.
    pulling = subprocess.Popen(argv, start_new_session=True)
    try:
        while pulling.poll() is None:
            check_stop()
            time.sleep(_LOOK_S)
    finally:
        if pulling.poll() is None:
            pulling.terminate()  # the engine ends a pull that nobody listens to
            try:
                pulling.wait(_END_S)
            except subprocess.TimeoutExpired:
                pulling.kill()
                pulling.wait()
    if pulling.returncode != 0:
        told = docker_files.read(folder, protocol.PULL) or {}
        raise EngineRefused(502, str(told.get("error") or "the image could not be pulled"))
