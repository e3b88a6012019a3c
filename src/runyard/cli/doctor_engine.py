"""Whether jobs with an image can run here: an engine that answers, and what speaks to it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

from runyard.cli.doctor_check import Check

_NAME = "containers"
_INSTALL = "pip install 'runyard[docker]'"


def containers(docker_host: str) -> Iterator[Check]:
    """No engine is no trouble, unless one was asked for."""
    from runyard.supervisor import engine_sockets

    if docker_host == engine_sockets.OFF:
        yield Check(_NAME, "ok", "turned off by docker_host")
        return
    places = engine_sockets.candidates(docker_host, os.environ, os.getuid())
    asked_for = bool(docker_host or os.environ.get("DOCKER_HOST"))
    at = ", ".join(places)
    if not all(map(engine_sockets.is_local, places)):
        yield Check(_NAME, "fail", f"{at} is not a socket of this machine", "Set docker_host.")
        return
    found = engine_sockets.answering(places)
    if found is None:
        seen = f"no engine listens at {at}"
        if asked_for or any(map(os.path.exists, places)):
            yield Check(_NAME, "fail" if asked_for else "warn", seen, _advice(places))
        else:
            yield Check(_NAME, "ok", f"{seen}: jobs with an image wait")
        return
    yield from _engine(found)


def _engine(path: str) -> Iterator[Check]:
    from runyard.supervisor.engine_http import Engine, EngineGone, EngineRefused

    try:
        told = Engine(path).call("GET", "/version", timeout_s=5.0) or {}
    except (EngineGone, EngineRefused) as error:
        yield Check(_NAME, "fail", f"the engine at {path} does not answer: {error}")
        return
    names = [str(part.get("Name")) for part in told.get("Components") or ()]
    kind = names[0] if names else "engine"
    seen = f"{kind} {told.get('Version', '?')} at {path}"
    if importlib.util.find_spec("docker") is None:
        seen += ", but the Python package docker is not installed"
        yield Check(_NAME, "warn", seen, _INSTALL)
    else:
        yield Check(_NAME, "ok", seen)


def _advice(places: list[str]) -> str:
    closed = [p for p in places if os.path.exists(p) and not os.access(p, os.W_OK)]
    if closed:
        return f"{closed[0]} is not open to this user: is it in the group of that socket?"
    return "Start the engine, or set docker_host (off: none is looked for)."
