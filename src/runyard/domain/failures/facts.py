"""What the proving lines name: the GPU, the module, the port, the path, who holds the memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from runyard.domain.failures.categories import Category

_UNITS = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_AMOUNT = r"([\d.]{1,20}) ?(bytes|[KMGT]iB|B)"
_TRIED = re.compile(rf"[Tt]ried to allocate {_AMOUNT}|trying to allocate {_AMOUNT}")
_TOTAL = re.compile(rf"GPU (\d{{1,4}}) has a total capacit?y of {_AMOUNT}")
_TOTAL_OLD = re.compile(rf"\(GPU (\d{{1,4}}); {_AMOUNT} total capacity")
_UNALLOCATED = re.compile(rf"{_AMOUNT} is reserved by PyTorch but unallocated")
_HELD = re.compile(rf"Process (\d{{1,10}}) has {_AMOUNT} memory in use")
MOST_HOLDERS = 20

_QUOTED = r"['\"]([^'\"]{1,500})['\"]"
_PATTERNS: dict[Category, tuple[tuple[str, re.Pattern[str]], ...]] = {
    Category.IMPORT: (
        ("module", re.compile(r"No module named ['\"]?([\w.\-]{1,200})")),
        ("name", re.compile(rf"cannot import name {_QUOTED}")),
    ),
    Category.ENV: (
        ("library", re.compile(r"([\w.+-]{1,100}\.so[\w.]{0,20}): cannot open shared object")),
        ("symbol", re.compile(r"undefined symbol: (\S{1,300})")),
        ("version", re.compile(r"version `([\w.]{1,40})' not found")),
    ),
    Category.PATH: (("path", re.compile(rf"(?:Errno \d{{1,3}}\][^:]{{1,60}}|file): ?{_QUOTED}")),),
    Category.DISK_FULL: (("path", re.compile(rf"on device(?: \(\d+\))?: {_QUOTED}")),),
    Category.STORAGE: (("path", re.compile(rf"\][^:]{{1,60}}: {_QUOTED}")),),
    Category.PORT_IN_USE: (
        ("port", re.compile(r"[Pp]ort:? {0,2}(\d{2,5})\b")),
        ("port", re.compile(r"(?::|', )(\d{3,5})\)?(?::|\s|$|\])")),
    ),
    Category.CONFIG: (
        ("arguments", re.compile(r"unrecognized arguments: (.{1,300})")),
        ("arguments", re.compile(r"arguments are required: (.{1,300})")),
        ("arguments", re.compile(r"error: argument (.{1,200})")),
        ("arguments", re.compile(r"not used by the HfArgumentParser: \[(.{1,300})\]")),
        ("command", re.compile(r"([\w./+-]{1,200}): (?:command )?not found")),
    ),
    Category.MODEL_ID: (
        ("model", re.compile(r"([\w./\-]{1,200}) is not a local folder")),
        ("url", re.compile(r"for url: (\S{1,400})")),
    ),
    Category.MODEL_FILES: (
        ("model", re.compile(r"([\w./\-]{1,200}) does not appear to have a file named")),
        ("model", re.compile(rf"Can't load [a-z ]{{1,30}} (?:for|of) {_QUOTED}")),
    ),
    Category.AUTH: (("url", re.compile(r"for url: (\S{1,400})")),),
    Category.NETWORK: (
        ("host", re.compile(r"host='([\w.\-]{1,200})'")),
        ("host", re.compile(r"connect to '([^']{1,200})'")),
    ),
    Category.RATE_LIMIT: (("retry_after_s", re.compile(r"(?i)retry[- ]after:? {0,2}(\d{1,6})")),),
    Category.CKPT_CORRUPT: (("path", re.compile(r"((?:/|\./)[\w./@%+=~-]{1,400})")),),
    Category.CKPT_MISSING: (
        ("path", re.compile(r"checkpoint (?:at|found in output directory) \(?([^\s)]{1,400})")),
    ),
    Category.NAN: (
        ("bad_step", re.compile(r"(?i)\b(?:iteration|step|batch|iter)[ =:]{1,3}(\d{1,12})\b")),
    ),
    Category.COMM_HANG: (
        ("collective", re.compile(r"OpType=(\w{1,40})")),
        ("sequence", re.compile(r"SeqNum=(\d{1,15})")),
        ("timeout_ms", re.compile(r"Timeout\(ms\)=(\d{1,12})")),
    ),
}
_NUMBERS = frozenset({"port", "retry_after_s", "bad_step", "sequence", "timeout_ms"})


def named(category: Category, lines: Sequence[str]) -> dict[str, Any]:
    """The first that each line names; the root comes first."""
    found: dict[str, Any] = _gpu_memory(lines) if category is Category.GPU_OOM else {}
    for name, pattern in _PATTERNS.get(category, ()):
        for line in lines:
            match = pattern.search(line)
            if match is not None and name not in found:
                value = match.group(1).strip()
                found[name] = int(value) if name in _NUMBERS else value
    return found


def _gpu_memory(lines: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in lines:
        total = _TOTAL.search(line) or _TOTAL_OLD.search(line)
        if total is not None and "total_bytes" not in found:
            found["gpu"] = int(total.group(1))
            found["total_bytes"] = _bytes(total.group(2), total.group(3))
        tried = _TRIED.search(line)
        if tried is not None and "tried_bytes" not in found:
            found["tried_bytes"] = _bytes(*(part for part in tried.groups() if part))
        unallocated = _UNALLOCATED.search(line)
        if unallocated is not None and "unallocated_bytes" not in found:
            found["unallocated_bytes"] = _bytes(*unallocated.groups())
        if "holders" not in found:
            held = _HELD.findall(line)[:MOST_HOLDERS]
            if held:
                found["holders"] = [
                    {"pid": int(pid), "bytes": _bytes(number, unit)} for pid, number, unit in held
                ]
    return found


def _bytes(number: str, unit: str) -> int:
    try:
        return int(float(number) * _UNITS[unit])
    except ValueError:
        return 0
