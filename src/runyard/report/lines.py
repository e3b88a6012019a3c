"""One line of the metrics file: which names and values may stand in it. Written without `json`,
whose loading would take most of the time that importing this package may."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
LONGEST_LINE = 65_535  # with its end, below the 64 KiB that a reader must be ready for
LONGEST_NAME = 128
MOST_VALUES = 400
LONGEST_PATH = 4096

# Fields that belong to the line itself; a metric of such a name travels inside "values".
OWN_FIELDS = frozenset({"v", "t", "m", "pid", "rank", "token", "kind", "path", "values"})

_WORDS = ("NaN", "Infinity", "-Infinity")
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")


def encode(head: Mapping[str, object], metrics: Mapping[str, object]) -> bytes | None:
    """The line with its end, or None if nothing in it can be told."""
    fields = dict(head)
    inside: dict[str, float | int | str] = {}
    for name, given in metrics.items():
        if len(fields) + len(inside) >= MOST_VALUES or not good_name(name):
            continue
        value = number(given)
        if value is not None:
            (inside if name in OWN_FIELDS else fields)[name] = value
    if inside:
        fields["values"] = inside
    if len(fields) == len(head) and not head.keys() & {"kind", "phase"}:
        return None
    line = (_object(fields) + "\n").encode("ascii")
    return line if len(line) <= LONGEST_LINE else None


def _object(fields: Mapping[str, object]) -> str:
    """Names are plain (`good_name`), so only texts that are no number word need escaping."""
    return "{" + ",".join(f'"{name}":{_value(value)}' for name, value in fields.items()) + "}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return _object(value)
    if not isinstance(value, str):
        return repr(value)
    if value in _WORDS:
        return f'"{value}"'
    import json

    return json.dumps(value)


def good_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST_NAME
        and _NAME_CHARACTERS.issuperset(name)
    )


def number(value: object) -> float | int | str | None:
    """As JSON can carry it: NaN and infinities as words, arrays of one element by their item."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, int | float):
        value = _scalar(value)
    if isinstance(value, int):
        plain = int(value)
        return plain if abs(plain) < 2**63 else _finite_or_word(_as_float(plain))
    return _finite_or_word(value) if isinstance(value, float) else None


def _scalar(value: object) -> float | int | None:
    """A number out of a numpy or torch scalar, a Decimal or a Fraction."""
    if value is None or isinstance(value, str | bytes | bytearray):
        return None
    try:
        item = getattr(value, "item", None)
        if callable(item):
            value = item()
        if isinstance(value, int | float):
            return value
        return float(value)  # type: ignore[arg-type]
    except Exception:  # foreign code: an array of many elements, a lost device ...
        return None


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _finite_or_word(value: float) -> float | str:
    if math.isfinite(value):
        return float(value)
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
