"""What `runyard doctor` looks at; each check says ok, warn or fail, what it saw and what to do."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from runyard.cli import doctor_engine, doctor_stacks, formatting
from runyard.cli.doctor_check import Check
from runyard.sdk import errors
from runyard.sdk.client import Client

_LITTLE_SPACE = 5 * 1024**3
_NO_SPACE = 200 * 1024**2


def all_of(
    data_dir: Path, client: Client, database_url: str, docker_host: str = ""
) -> Iterator[Check]:
    """One after the other; a check that breaks is itself a finding, and the rest go on."""
    checks: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("python", _python),
        ("data directory", lambda: _folder(data_dir)),
        ("disk", lambda: _disk(data_dir)),
        ("file system", lambda: _file_system(data_dir)),
        ("locks", lambda: _locks(data_dir)),
        ("containment", lambda: _containment(data_dir)),
        ("gpu", _gpu),
        ("stacks", doctor_stacks.stacks),
        ("containers", lambda: doctor_engine.containers(docker_host)),
        ("database", lambda: _database(database_url)),
        ("server", lambda: _server(client)),
    ]
    for name, check in checks:
        try:
            yield from check()
        except Exception as broken:
            yield Check(
                name, "fail", f"the check itself failed: {broken!r}", "Please report this."
            )


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "ok", f"{version} at {sys.executable}")
    if sys.platform != "linux":
        yield Check("system", "fail", sys.platform, "Jobs run on Linux only.")


def _folder(folder: Path) -> Iterator[Check]:
    if not folder.exists():
        yield Check("data directory", "ok", f"{folder} (made at the first start)")
        return
    mode = folder.stat().st_mode & 0o777
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Check("data directory", "fail", f"{folder} cannot be written", "Choose --data-dir.")
    elif mode & 0o077:
        yield Check(
            "data directory",
            "warn",
            f"{folder} is open to others ({mode:o})",
            f"chmod 700 {folder}",
        )
    else:
        yield Check("data directory", "ok", str(folder))


def _existing(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _disk(folder: Path) -> Iterator[Check]:
    usage = shutil.disk_usage(_existing(folder))
    percent = 100 * usage.used / usage.total if usage.total else 0.0
    seen = f"{formatting.size(usage.free)} free, {percent:.0f}% used"
    if usage.free < _NO_SPACE:
        yield Check("disk", "fail", seen, "Free some space: nothing can be accepted.")
    elif percent > 90 or usage.free < _LITTLE_SPACE:
        yield Check("disk", "warn", seen, "No job starts above gate_disk (90 %). 'runyard prune'.")
    else:
        yield Check("disk", "ok", seen)


def _file_system(folder: Path) -> Iterator[Check]:
    from runyard import data_dir

    kind = data_dir.file_system_kind(_existing(folder).resolve())
    if data_dir.is_network(kind):
        yield Check(
            "file system", "fail", f"{kind} is a network file system", "Choose a local --data-dir."
        )
    else:
        yield Check("file system", "ok", kind or "unknown")


def _locks(folder: Path) -> Iterator[Check]:
    """A second process must see a POSIX lock that the first one holds."""
    import fcntl
    import tempfile

    place = _existing(folder)
    if not os.access(place, os.W_OK):
        yield Check("locks", "warn", f"{place} cannot be written, so locks were not tried")
        return
    with tempfile.NamedTemporaryFile(dir=place, prefix=".doctor-") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            try:
                with open(file.name, "r+b") as other:
                    fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os._exit(1)
            except OSError:
                os._exit(0)
        _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == 0:
        yield Check("locks", "ok", "held locks are seen by other processes")
    else:
        yield Check("locks", "fail", "locks do not exclude", "Choose a local --data-dir.")


# What is lost without it. Extras that are used where they are (cgroups, namespaces) are no loss.
_WANTED = {
    "subreaper": "processes that leave their parent may outlive a killed supervisor",
    "tag": "such processes are found again by their environment only",
    "pidfd": "signals are sent by pid after a check, not through a descriptor",
    "children_file": "the process tree is read by scanning all of /proc",
    "hole_punching": "the log cap cannot be kept on this file system",
    "ctypes": "no calls into the kernel: the weakest containment is used",
}


def _containment(folder: Path) -> Iterator[Check]:
    from runyard.supervisor import probe

    found: dict[str, Any] = probe.probe(str(_existing(folder)))
    lost = [name for name in _WANTED if not found.get(name)]
    level = "warn" if {"subreaper", "tag"} & set(lost) else "ok"
    extras = [f"cgroup {role}" for role in found.get("cgroup_roles", ())]
    extras += ["strict_isolation"] if found.get("strict_isolation") else []
    also = f", also there: {', '.join(extras)}" if extras else ""
    yield Check("containment", level, f"{found.get('containment', 'unknown')}{also}")
    for name in lost:
        yield Check(f"containment: {name.replace('_', ' ')}", "warn", "not here", _WANTED[name])


def _gpu() -> Iterator[Check]:
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        yield Check("gpu", "ok", "nvidia-ml-py is not installed: no GPUs are looked for")
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as absent:
        level = "warn" if os.path.exists("/dev/nvidiactl") else "ok"
        advice = "The devices are there but the driver does not answer." if level == "warn" else ""
        yield Check("gpu", level, f"no NVIDIA driver ({absent})", advice)
        return
    try:
        count, version = pynvml.nvmlDeviceGetCount(), pynvml.nvmlSystemGetDriverVersion()
        yield Check("gpu", "ok", f"{count} GPUs, driver {version}")
    finally:
        pynvml.nvmlShutdown()


def _database(url: str) -> Iterator[Check]:
    if not url.startswith("postgresql://"):
        yield Check("database", "ok", "SQLite in the data directory")
        return
    try:
        import psycopg
    except ImportError:
        yield Check("database", "fail", "psycopg is missing", "pip install 'runyard[postgres]'")
        return
    try:
        with psycopg.connect(url, connect_timeout=3) as connection:
            row = connection.execute("show server_version").fetchone()
        yield Check("database", "ok", f"PostgreSQL {row[0] if row else '?'} answers")
    except psycopg.Error as refused:
        words = formatting.clean(str(refused).strip())
        yield Check("database", "fail", words, "Check database_url and that PostgreSQL runs.")


def _server(client: Client) -> Iterator[Check]:
    try:
        health = client.health(timeout=3)
    except errors.ServerUnreachable:
        yield Check("server", "warn", f"nobody answers at {client.url}", "runyard server")
        return
    except errors.RunyardError:
        yield Check(
            "server", "warn", f"{client.url} cannot start jobs now", "See the server's log."
        )
    else:
        yield Check("server", "ok", f"{client.url}, version {health.get('version', '?')}")
    try:
        client.queue_status(limit=1)
        yield Check("key", "ok", "the key opens the API")
    except (errors.Unauthenticated, errors.Forbidden) as refused:
        yield Check("key", "fail", refused.message, "Set RUNYARD_API_KEY, or see 'runyard keys'.")
    except errors.RunyardError as unwell:
        yield Check("queue", "warn", unwell.message, "See the server's log.")
