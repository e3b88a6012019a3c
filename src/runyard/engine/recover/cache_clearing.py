"""Cache entries that a failure named as damaged are dropped, so that they are fetched again. Only
single files inside of caches: whatever else a message names is nobody's to delete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from runyard.domain.job import Job
from runyard.engine import server_log
from runyard.engine.parts import Parts

_VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME", "XDG_CACHE_HOME")


def clear(parts: Parts, job: Job, paths: Iterable[str]) -> list[str]:
    """Those that were dropped. Never raises."""
    roots = _roots(parts, job)
    dropped = []
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            dropped += _drop(path, roots)
    for path in dropped:
        server_log.of(job.ref).info("dropped from a cache: {}", path)
    return dropped


def _roots(parts: Parts, job: Job) -> list[str]:
    home = os.path.expanduser("~")
    found = [str(parts.settings.data_dir / "cache"), os.path.join(home, ".cache")]
    found += [job.spec.env_vars[name] for name in _VARIABLES if name in job.spec.env_vars]
    return [os.path.realpath(root) for root in found if len(os.path.realpath(root)) > 1]


def _drop(path: str, roots: list[str]) -> list[str]:
    """The entry, and what it points to inside the same cache."""
    if not os.path.isabs(path):
        return []
    folder, name = os.path.split(os.path.normpath(path))
    entry = os.path.join(os.path.realpath(folder), name)
    root = next((one for one in roots if entry.startswith(one + os.sep)), None)
    if root is None or os.path.isdir(entry):
        return []
    target = os.path.realpath(entry)
    both = [entry] if target == entry or not target.startswith(root + os.sep) else [entry, target]
    gone = []
    for one in both:
        if os.path.isfile(one) or os.path.islink(one):
            os.unlink(one)
            gone.append(one)
    return gone
