"""Spans of time and amounts of memory as people write them."""

from __future__ import annotations

import re

from runyard.domain import errors

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNITS_GB = {"b": 1 / 1024**3, "k": 1 / 1024**2, "m": 1 / 1024, "g": 1.0, "t": 1024.0, "": 1.0}

_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])\s*", re.ASCII)
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d))?", re.ASCII)
_DAYS_HOURS = re.compile(r"(\d+)-(\d+)", re.ASCII)
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*(?:(b)|([kmgt]?)(?:i?b)?)", re.ASCII)


def parse_duration(text: str | float) -> float:
    """Seconds of `90`, `90s`, `15m`, `2h`, `1d`, `1h30m`, `HH:MM:SS`, `D-HH:MM:SS`, `D-HH:MM`."""
    word = str(text).strip().lower()
    if _NUMBER.fullmatch(word):
        return float(word)
    seconds = _clock_s(word)
    if seconds is None:
        seconds = _spans_s(word)
    if seconds is None:
        raise errors.BadRequest(
            f"'{text}' is not a span of time; write for example 90s, 15m, 1h30m or 1-12:00:00.",
            value=text,
        )
    return seconds


def parse_memory_gb(text: str | float) -> float:
    """GB (of 1024 MB) of `32`, `32GB`, `512MB`, `1.5TB`, `32GiB`, `32g`."""
    found = _MEMORY.fullmatch(str(text).strip().lower())
    if found is None:
        raise errors.BadRequest(
            f"'{text}' is not an amount of memory; write for example 32GB, 512MB or 1.5TB.",
            value=text,
        )
    return float(found[1]) * _UNITS_GB[found[2] or found[3]]


def _spans_s(word: str) -> float | None:
    parts = _SPAN.findall(word)
    if not parts or _SPAN.sub("", word):
        return None
    units = [unit for _, unit in parts]
    # 30m1h or 1h1h is more likely a slip than a wish
    if sorted(set(units), key=lambda unit: -_UNITS_S[unit]) != units:
        return None
    return sum(float(count) * _UNITS_S[unit] for count, unit in parts)


def _clock_s(word: str) -> float | None:
    days_hours = _DAYS_HOURS.fullmatch(word)
    if days_hours:
        return int(days_hours[1]) * _UNITS_S["d"] + int(days_hours[2]) * _UNITS_S["h"]
    found = _CLOCK.fullmatch(word)
    if found is None:
        return None
    days, first, second, third = found.groups()
    if days is None and third is None:
        return None  # 10:30 is hours to some and minutes to others
    if int(second) > 59 or int(third or 0) > 59:
        return None
    return (
        int(days or 0) * _UNITS_S["d"]
        + int(first) * _UNITS_S["h"]
        + int(second) * _UNITS_S["m"]
        + int(third or 0)
    )
