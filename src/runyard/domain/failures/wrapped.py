"""Tracebacks that something else has written: with words of its own before every line, or packed
into one line of JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runyard.domain.failures.log_text import Text
from runyard.domain.failures.tracebacks import HEADER

LONGEST_PREFIX = 120
MOST_PACKED = 200  # lines in one line
MOST_NOISE = 20
_DIGITS = re.compile(r"\d")
_END = re.compile(r'(?<!\\)"')


def opened(lines: Sequence[Text]) -> list[Text]:
    """The same lines, with such tracebacks as Python would have written them."""
    found: list[Text] = []
    shape, missed = "", 0
    for text in lines:
        at = text.body.find(HEADER)
        if at >= 0 and "\\n" in text.body:
            found += _unpacked(text, at)
            continue
        if at > 0:
            prefix = text.body[:at]
            wrapped = at <= LONGEST_PREFIX and bool(prefix.strip())
            shape, missed = (_DIGITS.sub("0", prefix) if wrapped else ""), 0
        if shape:
            body = text.body
            if _DIGITS.sub("0", body[: len(shape)]) == shape or _blank(body, shape):
                text = text._replace(body=body[len(shape) :])
            else:
                missed += 1
                shape = shape if missed < MOST_NOISE else ""
        found.append(text)
    return _dedented(found)


def _dedented(lines: list[Text]) -> list[Text]:
    """Where something has moved every line to the right, none of them is a quotation."""
    if any(text.body[:1] not in ("", " ") for text in lines):
        return lines
    indents = [len(text.body) - len(text.body.lstrip()) for text in lines if text.body.strip()]
    least = min(indents, default=0)
    return [text._replace(body=text.body[least:]) for text in lines] if least else lines


def _blank(body: str, shape: str) -> bool:
    """An empty line has lost the spaces at its end."""
    return body.strip() == shape.strip()


def _unpacked(text: Text, at: int) -> list[Text]:
    packed = text.body[at:]
    end = _END.search(packed)
    if text.body.lstrip().startswith("{") and end is not None:
        packed = packed[: end.start()]
    packed = packed.replace('\\"', '"')
    lines = packed.split("\\n")[:MOST_PACKED]
    return [text._replace(body=line, raw=line.strip(), packed=True) for line in lines]
