"""What the error numbers (Xid) of NVIDIA's driver mean for the next attempt."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runyard.domain.failures.categories import Category

# The program may have caused these by itself.
_OF_A_PROGRAM = frozenset({8, 13, 31, 43, 69, 94})
# Follows another fault or a kill.
_FOLLOWS = frozenset({45})
# The GPU has dealt with it itself, or it is a rate to watch.
_TO_WATCH = frozenset({63, 92})

_LINE = re.compile(r"NVRM: Xid \((?:PCI:)?[0-9a-fA-F:.]{1,32}\): {0,2}(\d{1,4})")


def in_line(text: str) -> int | None:
    found = _LINE.search(text)
    return None if found is None else int(found.group(1))


def meaning(number: int) -> Category | None:
    """None: no cause of a failure. An unknown number is taken for hardware."""
    if number in _FOLLOWS | _TO_WATCH or number <= 0:
        return None
    return Category.CUDA_FAULT if number in _OF_A_PROGRAM else Category.GPU_HW


def worst(numbers: Iterable[int]) -> int | None:
    """The one that says most: hardware before program."""
    telling = [number for number in numbers if meaning(number) is not None]
    hardware = [number for number in telling if meaning(number) is Category.GPU_HW]
    return next(iter(hardware or telling), None)


def worth_telling(numbers: Iterable[int]) -> int | None:
    """As `worst`; without a cause of a failure among them, one that has to be watched."""
    known = tuple(numbers)
    found = worst(known)
    return found or next((number for number in known if number in _TO_WATCH), None)
