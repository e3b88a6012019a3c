"""Public ids: `job-` and twelve characters that cannot be misread; and the nearest right name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

PREFIX = "job-"
LENGTH = 12
# 32 characters, five bits each; i, l and o are missing because they look like 1 and 0, u because
# words come out better without it
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

_REF = re.compile(rf"{PREFIX}[{ALPHABET}]{{{LENGTH}}}")
_ATTEMPT = re.compile(rf"({PREFIX}[{ALPHABET}]{{{LENGTH}}})\.([1-9][0-9]*)")
_MISREAD = str.maketrans("ilo", "110")


def job_ref(randomness: bytes) -> str:
    """A new job's public id from at least eight random bytes."""
    if len(randomness) < 8:
        raise ValueError("a job id needs eight random bytes")
    number = int.from_bytes(randomness[:8], "big")
    return PREFIX + "".join(ALPHABET[(number >> (5 * place)) & 31] for place in range(LENGTH))


def parse_job_ref(text: str) -> str | int | None:
    """A public id as we write it (also from one copied by eye), a numeric id, or None."""
    word = text.strip().lower()
    if word.isascii() and word.isdigit():
        return int(word)
    if word.startswith(PREFIX):
        word = PREFIX + word.removeprefix(PREFIX).translate(_MISREAD)
    return word if _REF.fullmatch(word) else None


def parse_attempt_id(text: str) -> tuple[str, int] | None:
    """(job's public id, attempt number)."""
    found = _ATTEMPT.fullmatch(text.strip())
    return (found[1], int(found[2])) if found else None


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of `words` a person most likely meant, or None when nothing is near."""
    folded = {candidate.lower(): candidate for candidate in words}
    found = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None
