"""Jobs with an image, for tests: a server's settings for an engine, and short ways to run one."""

from __future__ import annotations

from docker_engine import IMAGE, host_places
from yards import until

SHARE = {"cpu_cores": 0.5}  # containers get what they asked for, and no more
LOOP = "echo up; while :; do sleep 0.1; done"


def settings_for(engine, *more, network="none"):
    """Environment of a server whose containers have the host's programs, and `more` places."""
    return {
        "RUNYARD_DOCKER_HOST": engine.socket,
        "RUNYARD_DOCKER_NETWORK": network,
        "RUNYARD_DOCKER_MOUNTS": ",".join(f"{place}:ro" for place in (*host_places(), *more)),
    }


def run(yard, script, *states, **fields):
    ref = yard.submit(script, image=IMAGE, **{**SHARE, **fields})
    return ref, yard.wait(ref, *(states or ("completed",)), seconds=60)


def up(yard, script, **fields):
    """A job that runs and said so."""
    ref = yard.submit(script, image=IMAGE, **{**SHARE, **fields})
    until(lambda: "up" in yard.logs(ref), 60, lambda: (yard.job(ref), yard.logs(ref)))
    yard.wait(ref, "running", seconds=60)
    return ref


def folder(yard, ref):
    """Of its first attempt."""
    return yard.data / "attempts" / f"{ref}.1"
