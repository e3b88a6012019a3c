"""Joining a cluster: first a look at who it is and whom it lets in, then as a member."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runyard.ray_bridge import refusals
from runyard.ray_bridge.deadlines import Deadlines, Late
from runyard.ray_bridge.names import NAMESPACE
from runyard.ray_bridge.refusals import Refused

_PROBE_S = 60.0
_ATTACH_S = 30.0


def join(address: str, *, allow_insecure: bool) -> str:
    """Become a member; the cluster's address. Refused says what stands against it."""
    found = _checked(address, allow_insecure)
    import ray

    options = {
        "address": found,
        "namespace": NAMESPACE,
        "log_to_driver": False,
        "configure_logging": False,
        "logging_level": "ERROR",
    }
    try:
        Deadlines().call(lambda: ray.init(**options), _ATTACH_S)
    except Late as error:
        raise Refused(refusals.UNREACHABLE, address=found) from error
    except Exception as error:
        raise _explained(error, found) from error
    return found


def _checked(address: str, allow_insecure: bool) -> str:
    with ThreadPoolExecutor(2) as both:
        asked = both.submit(_probe, address, {"RAY_AUTH_MODE": "disabled"})
        member = both.submit(_probe, address, {"RAY_AUTH_MODE": "token"})
    stranger = asked.result()
    _check_version(stranger)
    found = str(stranger["address"] or address)
    if stranger.get("error") == "unreachable":
        raise Refused(refusals.UNREACHABLE, address=found)
    if "cluster" in stranger:
        if not allow_insecure:
            raise Refused(refusals.INSECURE, address=found)
        os.environ["RAY_AUTH_MODE"] = "disabled"
        _check_same(stranger)
        return found
    if stranger.get("error") != "refused":  # it may let everybody in: that is not known
        raise Refused(refusals.FAILED, why=stranger.get("message", "no answer"))
    os.environ["RAY_AUTH_MODE"] = "token"
    _check_member(member.result(), found)
    return found


def _check_member(member: dict[str, Any], address: str) -> None:
    if member.get("error") == "refused":
        raise Refused(refusals.TOKEN_REFUSED, address=address)
    if "error" in member:
        raise Refused(refusals.FAILED, why=member.get("message", member["error"]))
    _check_same(member)


def _probe(address: str, environment: dict[str, str]) -> dict[str, Any]:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe_main.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", program, address],
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            env=os.environ | environment,
            check=False,
        )
        return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]
    except (IndexError, ValueError):
        if "No module named 'ray'" in done.stderr:
            raise Refused(refusals.NOT_INSTALLED, python=sys.executable) from None
        raise Refused(refusals.FAILED, why=done.stderr.strip()[-500:]) from None
    except subprocess.TimeoutExpired:
        raise Refused(refusals.UNREACHABLE, address=address) from None


def _check_version(found: dict[str, Any]) -> None:
    version = tuple(int(part) for part in str(found["ray"]).split(".")[:2] if part.isdigit())
    if version < refusals.LEAST_RAY:
        least = ".".join(map(str, refusals.LEAST_RAY))
        raise Refused(refusals.TOO_OLD, found=found["ray"], least=least)


def _check_same(found: dict[str, Any]) -> None:
    """Ray wants the same version of itself and of Python everywhere."""
    cluster = found["cluster"]
    theirs = (cluster.get("ray_version"), cluster.get("python_version"))
    if theirs != (found["ray"], found["python"]) and None not in theirs:
        raise _mismatch(found["ray"], found["python"], *theirs)


def _mismatch(ray: str, python: str, their_ray: Any, their_python: Any) -> Refused:
    return Refused(
        refusals.VERSION_MISMATCH,
        ray=ray,
        python=python,
        cluster_ray=their_ray,
        cluster_python=their_python,
    )


def _explained(error: Exception, address: str) -> Refused:
    words = str(error)
    if type(error).__name__ == "AuthenticationError":
        return Refused(refusals.TOKEN_REFUSED, address=address)
    if isinstance(error, ConnectionError):
        return Refused(refusals.UNREACHABLE, address=address)
    if "node" in words and ("ip" in words.lower() or "raylet" in words.lower()):
        return Refused(refusals.NOT_A_MEMBER, address=address, why=words[:500])
    return Refused(refusals.FAILED, why=words[:500])
