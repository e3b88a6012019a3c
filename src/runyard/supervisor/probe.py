"""What this machine offers for containment, tried rather than guessed; for `runyard doctor`."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from runyard.supervisor import cgroup, identity, kernel, namespace, process_table


def probe(folder: str | None = None) -> dict[str, Any]:
    """Every capability by name. `folder` is where attempts will be (holes and locks depend on the
    file system). Forks short-lived children, so not for a process with many threads."""
    obstacle = namespace.obstacle()
    found: dict[str, Any] = {
        "ctypes": kernel.available,
        "pidfd": _pidfd(),
        "pidfd_inode": identity.pidfd_inode(os.getpid()) is not None,
        "children_file": os.path.exists(f"/proc/self/task/{os.getpid()}/children"),
        "subreaper": _in_child(kernel.become_subreaper),
        "tag": _in_child(_tag_can_be_set_and_read),
        "no_new_privs": _in_child(kernel.no_new_privileges),
        "strict_isolation": not obstacle,
        "strict_isolation_obstacle": obstacle,
        "cgroup_roles": sorted(cgroup.find(prepare=False)),
        "cgroup_v2": cgroup.writable_v2(),
        "cgroup_v1_freezer": cgroup.writable_v1_freezer(),
        "hole_punching": _hole_punching(folder or tempfile.gettempdir()),
        "python": sys.executable,
    }
    found["level"], found["containment"] = _level(found)
    return found


def _level(found: dict[str, Any]) -> tuple[int, str]:
    """The rung of the ladder that attempts get; cgroups and namespaces are extras on top."""
    if found["subreaper"] and found["tag"]:
        return 1, "subreaper+tag"
    if found["subreaper"]:
        return 1, "subreaper"
    if found["tag"]:
        return 0, "tag"
    return 0, "process group"


def _in_child(check: Callable[[], bool]) -> bool:
    """Try it in a child: most of these cannot be undone."""
    pid = os.fork()
    if pid == 0:
        done = False
        try:
            done = bool(check())
        finally:
            os._exit(0 if done else 1)
    return os.waitpid(pid, 0)[1] == 0


def _pidfd() -> bool:
    try:
        pidfd = os.pidfd_open(os.getpid())
        signal.pidfd_send_signal(pidfd, 0)
        os.close(pidfd)
    except (AttributeError, OSError):
        return False
    return True


def _tag_can_be_set_and_read() -> bool:
    tag = random.getrandbits(60) | 1 << 60
    hard = resource.getrlimit(kernel.RLIMIT_LOCKS)[1]
    if hard not in (-1, resource.RLIM_INFINITY) and hard < tag:
        return False  # we are tagged ourselves: a job inside a job
    return kernel.set_tag(tag) and process_table.tag(os.getpid()) == tag


def _hole_punching(folder: str) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * (1 << 18))
            file.flush()
            before = os.fstat(file.fileno()).st_blocks
            done = kernel.punch_hole(file.fileno(), 1 << 16, 1 << 17)
            return done and os.fstat(file.fileno()).st_blocks < before
    except OSError:
        return False
