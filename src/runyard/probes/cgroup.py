"""What control groups (version 1 and 2) let this process use, with every group above it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC_SELF = Path("/proc/self")
# Version 1 says "no limit" with a number near the largest it can hold.
_UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class CgroupPlaces:
    """Folders of this process's groups, its own first and then those above; empty where there are
    none. `unified` is the version 2 tree, which may hold either controller."""

    unified: tuple[Path, ...] = ()
    cpu: tuple[Path, ...] = ()
    cpuacct: tuple[Path, ...] = ()
    memory: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryUse:
    used: int
    limit: int


def find_places(proc_self: Path = PROC_SELF) -> CgroupPlaces:
    """Where the groups of this process are mounted."""
    paths = _own_paths(_read(proc_self / "cgroup"))
    found: dict[str, tuple[Path, ...]] = {}
    for controllers, root, mount in _mounts(_read(proc_self / "mountinfo")):
        for controller in controllers:
            path = paths.get(controller)
            if path is not None and controller not in found:
                found[controller] = tuple(_folders(mount, root, path))
    return CgroupPlaces(
        unified=found.get("", ()),
        cpu=found.get("cpu", ()),
        cpuacct=found.get("cpuacct", ()),
        memory=found.get("memory", ()),
    )


def cpu_quota_milli(places: CgroupPlaces) -> int | None:
    """The smallest CPU quota over all groups, in thousandths of a core."""
    quotas = []
    for folder in places.unified:
        words = _read(folder / "cpu.max").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            quotas.append(int(words[0]) * 1000 // max(1, int(words[1])))
    for folder in places.cpu:
        quota = _number(folder / "cpu.cfs_quota_us")
        period = _number(folder / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            quotas.append(quota * 1000 // period)
    return max(1, min(quotas)) if quotas else None


def cpu_used_s(places: CgroupPlaces) -> float | None:
    """CPU seconds used so far by the group that has the quota."""
    for folder in places.unified:
        if _read(folder / "cpu.max").startswith("max") or not (folder / "cpu.max").exists():
            continue
        for line in _read(folder / "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "usage_usec":
                return int(value) / 1e6
    for folder in places.cpuacct:
        used = _number(folder / "cpuacct.usage")
        if used is not None:
            return used / 1e9
    return None


def memory_limit(places: CgroupPlaces) -> int | None:
    """The smallest memory limit over all groups, in bytes."""
    limits = [limit for _, limit in _memory_limits(places)]
    return min(limits) if limits else None


def memory_use(places: CgroupPlaces) -> MemoryUse | None:
    """Use and limit of the group that is nearest to its limit; page cache that can be dropped at
    any time does not count as used."""
    uses = []
    for folder, limit in _memory_limits(places):
        used = _number(folder / "memory.current")
        cache = "inactive_file"
        if used is None:
            used, cache = _number(folder / "memory.usage_in_bytes"), "total_inactive_file"
        if used is not None:
            uses.append(MemoryUse(max(0, used - _stat(folder, cache)), limit))
    return max(uses, key=lambda use: use.used / use.limit) if uses else None


def _memory_limits(places: CgroupPlaces) -> Iterator[tuple[Path, int]]:
    for folder in places.unified:
        limit = _number(folder / "memory.max")
        if limit:
            yield folder, limit
    for folder in places.memory:
        limit = _number(folder / "memory.limit_in_bytes")
        if limit and limit < _UNLIMITED:
            yield folder, limit


def _own_paths(text: str) -> dict[str, str]:
    """Controller -> path of this process's group; "" is version 2."""
    paths = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                paths[controller] = parts[2]
    return paths


def _mounts(text: str) -> Iterator[tuple[list[str], str, Path]]:
    """(controllers, root inside the hierarchy, mount point) of every mounted hierarchy."""
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if not dash or len(fields) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2":
            yield [""], _plain(fields[3]), Path(_plain(fields[4]))
        elif kinds[0] == "cgroup":
            yield kinds[2].split(","), _plain(fields[3]), Path(_plain(fields[4]))


def _folders(mount: Path, root: str, path: str) -> Iterator[Path]:
    above = "" if root == "/" else root
    # a mount that does not show our own group still shows one above it
    inside = path.removeprefix(above) if f"{path}/".startswith(f"{above}/") else ""
    folder = mount / inside.strip("/")
    yield folder
    while folder != mount:
        folder = folder.parent
        yield folder


def _stat(folder: Path, name: str) -> int:
    for line in _read(folder / "memory.stat").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _number(path: Path) -> int | None:
    try:
        return int(_read(path))
    except ValueError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _plain(field: str) -> str:
    """mountinfo writes spaces and the like as octal escapes."""
    for escaped, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(escaped, char)
    return field
