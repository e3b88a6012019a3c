"""The root of a small Debian with Python, taken from what is installed on this machine.

For images in tests: packages are those that every Debian has, Python, and what they depend on, so
that a recipe is built on what it would find in the slim image of Python, without a registry.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

_STATUS = Path("/var/lib/dpkg/status")
_WANTED = ("python3.11", "python3.11-venv", "ca-certificates", "passwd")
_FOLDERS = ("dev", "home", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "var/tmp")
_SETTINGS = ("login.defs", "ld.so.cache", "pam.d", "ssl/certs/ca-certificates.crt")
_USERS = Path("/usr/share/base-passwd")  # those of a new Debian, not this machine's
_LEFT_OUT = re.compile(r"^/usr/share/(doc|man|info|locale|lintian|i18n)/")


class NoDebian(Exception):
    """This machine has not got what such a root is made of."""


def write_archive(path: Path, *, more: Iterable[tuple[Path, str]] = ()) -> None:
    """As a tar; `more` are (file or folder of this machine, its place in the root)."""
    names = _with_dependencies(_installed())
    listed = subprocess.run(
        ["dpkg-query", "--listfiles", *names], capture_output=True, text=True, check=True
    )
    with tarfile.open(path, "w") as tar:
        root = _Root(tar)
        for name in _FOLDERS:
            root.folder(name, 0o1777 if name.endswith("tmp") else 0o755)
        for name in ("bin", "lib", "lib64", "sbin"):
            root.link(name, f"usr/{name}")
        root.link("usr/bin/python", "python3.11")
        root.link("usr/bin/sh", "dash")
        for name in ("passwd", "group"):
            root.take(_USERS / f"{name}.master", f"etc/{name}")
        for source, place in more:
            root.take(source, place)
        for line in sorted(set(listed.stdout.splitlines())):
            # All of it is below usr, whatever a package says.
            real = re.sub(r"^/(bin|sbin|lib|lib64)(/|$)", r"/usr/\1\2", line)
            if real.startswith("/") and not _LEFT_OUT.match(real):
                root.take(Path(real), real.lstrip("/"), recursive=False)
        for name in _SETTINGS:
            root.take(Path("/etc") / name, f"etc/{name}")


class _Root:
    """The first with a name is taken: an engine refuses a tar that has one twice."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._names: set[str] = set()

    def folder(self, name: str, mode: int) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        self._add(entry)

    def link(self, name: str, target: str) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        self._add(entry)

    def take(self, source: Path, name: str, *, recursive: bool = True) -> None:
        if not name or not (source.is_symlink() or source.exists()):
            return
        if source.is_dir() and not source.is_symlink() and recursive:
            for inner in sorted(source.iterdir()):
                self.take(inner, f"{name}/{inner.name}")
        elif name not in self._names:
            self._names.add(name)
            self._tar.add(source, arcname=name, recursive=False)

    def _add(self, entry: tarfile.TarInfo) -> None:
        self._names.add(entry.name)
        self._tar.addfile(entry)


def _installed() -> dict[str, dict[str, str]]:
    """Fields of the installed packages, by name."""
    if not _STATUS.exists():
        raise NoDebian("this is no Debian")
    found = {}
    for block in _STATUS.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line[:1] not in (" ", "\t")]
        fields = dict(line.partition(": ")[::2] for line in lines)
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields
    missing = [name for name in _WANTED if name not in found]
    if missing:
        raise NoDebian(f"not installed: {', '.join(missing)}")
    return found


def _with_dependencies(packages: dict[str, dict[str, str]]) -> list[str]:
    provided = {
        name.split()[0]: package
        for package, fields in packages.items()
        for name in fields.get("Provides", "").split(",")
        if name.strip()
    }
    todo = [name for name, fields in packages.items() if fields.get("Essential") == "yes"]
    todo += _WANTED
    chosen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in chosen:
            continue
        chosen.add(name)
        fields = packages[name]
        needed = f"{fields.get('Pre-Depends', '')},{fields.get('Depends', '')}".split(",")
        for alternatives in filter(str.strip, needed):
            names = [re.split(r"[\s:(]", one.strip())[0] for one in alternatives.split("|")]
            found = [n if n in packages else provided.get(n) for n in names]
            todo += [one for one in found if one][:1]
    return sorted(chosen)
