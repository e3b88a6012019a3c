"""Somebody without rights: a throwaway unix user where root asks, for tests and benchmarks."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yards import alive, all_pids

CHECKOUT = Path(__file__).parent.parent


class NobodyToBe(Exception):
    """This machine lacks what it takes to become somebody else."""


@dataclass(frozen=True)
class Person:
    """Somebody who is not root, with a home, an interpreter that has Runyard, and nothing else."""

    name: str
    uid: int
    home: Path
    python: str
    becoming: dict[str, Any]  # options of Popen that make a process this person's

    def run(self, *argv: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, argv)],
            **{"cwd": self.home, "timeout": 60, "check": False, **self.becoming, **options},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def folder(self, name: str) -> Path:
        made = self.home / name
        made.mkdir(mode=0o700)
        shutil.chown(made, self.uid)
        return made

    def processes(self) -> list[int]:
        """What lives in this person's name; only told apart where the person is not us."""
        if not self.becoming:
            return []
        return [pid for pid in all_pids() if _uid(pid) == self.uid and alive(pid)]


def _uid(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


@contextmanager
def somebody() -> Iterator[Person]:
    """A throwaway user until the context is left; whoever runs this, unless that is root."""
    home = Path(tempfile.mkdtemp(prefix="runyard-person-"))
    try:
        if os.geteuid() != 0:
            entry = pwd.getpwuid(os.geteuid())
            yield Person(entry.pw_name, entry.pw_uid, home, sys.executable, {})
            return
        for tool in ("useradd", "userdel"):
            if shutil.which(tool) is None:
                raise NobodyToBe(f"{tool} is not installed")
        name = f"runyard{secrets.token_hex(4)}"
        _change_users("useradd", "--no-create-home", "--home-dir", home, "-s", "/bin/sh", name)
        try:
            entry = pwd.getpwnam(name)
            os.chown(home, entry.pw_uid, entry.pw_gid)
            becoming = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            yield Person(name, entry.pw_uid, home, _interpreter(home, becoming), becoming)
        finally:
            _change_users("userdel", name)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _change_users(*argv: object) -> None:
    """Another worker may hold the lock of the user database, a process of the user be dying."""
    deadline = time.monotonic() + 60
    while True:
        done = subprocess.run([*map(str, argv)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        assert time.monotonic() < deadline, f"{argv}: {done.stderr}"
        time.sleep(0.1)


def _interpreter(home: Path, becoming: dict[str, Any]) -> str:
    """A virtual environment of the person's own that finds this checkout and its packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"]
    for python in found:
        made = subprocess.run(
            ["/bin/sh", "-c", f"exec {python} -m venv --without-pip {home}/venv"],
            capture_output=True,
            cwd=home,
            env={"PATH": os.defpath},
            check=False,
            **becoming,
        )
        if made.returncode == 0:
            break
    else:
        raise NobodyToBe(f"an unprivileged user can run none of {found}")
    places = [CHECKOUT / "src", Path(sysconfig.get_paths()["purelib"])]
    lines = [str(place if _readable(place, becoming) else _copy(place, home)) for place in places]
    (home / "venv" / "lib" / version / "site-packages" / "runyard.pth").write_text(
        "\n".join(lines) + "\n"
    )
    return str(home / "venv" / "bin" / "python")


def _readable(place: Path, becoming: dict[str, Any]) -> bool:
    tried = subprocess.run(["test", "-r", place / "."], check=False, cwd="/", **becoming)
    return tried.returncode == 0


def _copy(place: Path, home: Path) -> Path:
    """The checkout may be in root's own folder."""
    copy = home / "copies" / place.name
    shutil.copytree(place, copy)
    return copy
