"""Where a program is found, as the kernel and the shell would find it for the job."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from runyard.preflight.command_words import Command
from runyard.preflight.findings import Finding, failed, passed

_DEFAULT_PATH = "/bin:/usr/bin"  # what execvp takes when a job has none


def find(name: str, env: Mapping[str, str], cwd: str) -> str | None:
    """The file that would be executed; None when there is none that may be."""
    for path in _candidates(name, env, cwd):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def check(command: Command, env: Mapping[str, str], cwd: str) -> Finding:
    name = command.words[0]
    found = find(name, env, cwd)
    if found is not None:
        return passed("command", path=found)
    if command.by_shell and _known_to_the_shell(name, env, cwd):
        return passed("command", path=name)
    there = [path for path in _candidates(name, env, cwd) if os.path.exists(path)]
    if there:
        return failed("command", "not_executable", path=there[0])
    return failed("command", "executable_missing", name=name)


def _candidates(name: str, env: Mapping[str, str], cwd: str) -> list[str]:
    if "/" in name:
        return [os.path.join(cwd, name)]
    folders = env.get("PATH", _DEFAULT_PATH).split(os.pathsep)
    return [os.path.join(cwd, folder, name) for folder in folders]


def _known_to_the_shell(name: str, env: Mapping[str, str], cwd: str) -> bool:
    """One of its own, such as `ulimit` or `.`."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'command -v -- "$1"', "sh", name],
        env=dict(env),
        cwd=cwd if os.path.isdir(cwd) else "/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=10,
        check=False,
    )
    return done.returncode == 0
