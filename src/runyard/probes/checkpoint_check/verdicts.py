"""What the check of a checkpoint finds, and how it says so."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

GOOD = "good"
UNKNOWN = "unknown"
BAD = "bad"
GONE = "gone"

# Names that begin or end so belong to something that was never finished.
_UNFINISHED_STARTS = (".partial-", ".tmp", "tmp-", "tmp_", "temp-", ".nfs")
_UNFINISHED_ENDS = (".tmp", ".temp", ".part", ".partial", ".incomplete")
_UNFINISHED_INSIDE = (".orbax-checkpoint-tmp", ".tmp-")


class Flaw(Exception):
    """Something is wrong with a checkpoint; `code` and `params` say what."""

    def __init__(self, code: str, **params: Any) -> None:
        super().__init__(code)
        self.code = code
        self.params = params


class Unproven(Exception):
    """Nothing wrong was found, but it cannot be proven whole either."""

    def __init__(self, code: str, **params: Any) -> None:
        super().__init__(code)
        self.code = code
        self.params = params


@dataclass
class Finding:
    """The outcome for one path, as it is printed."""

    path: str
    verdict: str
    family: str | None = None
    step: int | None = None
    size_bytes: int = 0
    saved_at: float = 0.0
    hashed: bool = False
    why: dict[str, Any] | None = field(default=None)


def is_unfinished(name: str) -> bool:
    lowered = name.lower()
    return (
        lowered == "tmp"
        or lowered.startswith(_UNFINISHED_STARTS)
        or lowered.endswith(_UNFINISHED_ENDS)
        or any(part in lowered for part in _UNFINISHED_INSIDE)
    )


def size_of(path: str) -> int:
    """Of a file that must be there."""
    try:
        return os.stat(path).st_size
    except OSError:
        raise Flaw("missing_file", file=os.path.basename(path)) from None


def listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise Flaw("unreadable", error=error.strerror or type(error).__name__) from None
