"""The part of a line that is the same each time the same thing goes wrong."""

from __future__ import annotations

import re

LONGEST = 200

_VARYING = re.compile(
    r"0x[0-9a-fA-F]{1,64}"
    r"|\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|(?P<path>(?:[A-Za-z]+://|~|\.{1,2})?/[\w.@%+=:~-]+(?:/[\w.@%+=:~-]*)*)"
    r"|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,64}\b"
    r"|(?P<number>(?<![A-Za-z_])[-+]?\d[\d.,]*(?:[eE][-+]?\d{1,4})?)"
)
_SPACES = re.compile(r"\s+")


def of_line(text: str) -> str:
    """Numbers, addresses and paths are left out; names and words stay."""
    short = _VARYING.sub(_placeholder, text[: LONGEST * 4])
    return _SPACES.sub(" ", short).strip()[:LONGEST]


def _placeholder(found: re.Match[str]) -> str:
    if found["path"]:
        # The last part often tells what was read or run; its numbers do not.
        name = found["path"].rstrip("/").rpartition("/")[2]
        return "<path>/" + re.sub(r"[0-9a-fA-F]{8,}|\d+", "#", name)
    return "#"
