"""Public ids: `job-` and twelve characters that cannot be misread."""

from __future__ import annotations

PREFIX = "job-"
LENGTH = 12
# 32 characters, five bits each; i, l and o are missing because they look like 1 and 0, u because
# words come out better without it
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def job_ref(randomness: bytes) -> str:
    """A new job's public id from at least eight random bytes."""
    if len(randomness) < 8:
        raise ValueError("a job id needs eight random bytes")
    number = int.from_bytes(randomness[:8], "big")
    return PREFIX + "".join(ALPHABET[(number >> (5 * place)) & 31] for place in range(LENGTH))
