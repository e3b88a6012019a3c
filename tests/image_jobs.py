"""Jobs with an image, for tests: a server's settings for an engine, and short ways to run one."""

from __future__ import annotations

import os

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


def up_until_told(yard, code):
    """A job that runs, said so, and ends with `code` when a file `go` is in its output folder:
    (job, that file)."""
    ref = up(yard, f"echo up; while ! test -e go; do sleep 0.1; done; echo last; exit {code}")
    return ref, yard.data / "outputs" / ref / "go"


def living(ref):
    """Processes of its container: they have its marker, also outside of it."""
    marker = f"RUNYARD_ATTEMPT_ID={ref}.1".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if marker in words and b"RUNYARD_JOB_ID=" + ref.encode() in words:
            found.append(int(name))
    return found


def folder(yard, ref):
    """Of its first attempt."""
    return yard.data / "attempts" / f"{ref}.1"
