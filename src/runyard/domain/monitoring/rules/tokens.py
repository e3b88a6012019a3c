"""The words of a rule's expression. Every word is cut off the front once, so this is linear."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 500
LONGEST_TEXT = 64
LONGEST_FOR_S = 30 * 86400.0

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<duration>\d{1,9}(?:\.\d{1,6})?(?:ms|[smhd])(?![\w.]))
    | (?P<number>(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,3})?(?![\w.]))
    | (?P<name>[A-Za-z_]\w*(?:\.\w+)*(?!\w))
    | (?P<text>"[^"\\\n]*"|'[^'\\\n]*')
    | (?P<sign><=|>=|==|!=|&&|\|\||[-+*/%<>(),!])
    )""",
    re.VERBOSE | re.ASCII,
)
_SAME = {"&&": "and", "||": "or", "!": "not"}


class RuleError(ValueError):
    """Why an expression is refused, in one sentence, with the place where reading stopped."""

    def __init__(self, why: str, place: int | None = None) -> None:
        super().__init__(why if place is None else f"{why} (at character {place + 1})")
        self.why, self.place = why, place


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # number, duration, name, text, sign, end
    text: str
    place: int
    value: float = 0.0


def split(expression: str) -> list[Token]:
    """Its words with an `end` after them; RuleError for anything that is none."""
    if len(expression) > LONGEST:
        raise RuleError(f"an expression has at most {LONGEST} characters")
    found: list[Token] = []
    place, end = 0, len(expression.rstrip())
    while place < end:
        match = _TOKEN.match(expression, place, end)
        if match is None:
            place += len(expression[place:end]) - len(expression[place:end].lstrip())
            raise RuleError(f"{expression[place]!r} means nothing here", place)
        found.append(_token(match))
        place = match.end()
    return [*found, Token("end", "", end)]


def seconds(text: str) -> float:
    """`90s`, `5m`, `1.5h`, or a plain number of seconds."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*(ms|[smhd]?)\s*", text, re.ASCII)
    if match is None:
        raise RuleError(f"{text[:40]!r} is no duration such as 90s, 5m or 1h")
    found = float(match[1]) * _UNITS[match[2] or "s"]
    if found > LONGEST_FOR_S:
        raise RuleError("a duration is at most 30 days")
    return found


def _token(match: re.Match[str]) -> Token:
    kind = match.lastgroup or ""
    text, place = match[kind], match.start(kind)
    if kind == "number":
        return Token(kind, text, place, float(text))
    if kind == "duration":
        return Token(kind, text, place, seconds(text))
    if kind == "text":
        if len(text) - 2 > LONGEST_TEXT:
            raise RuleError(f"a text has at most {LONGEST_TEXT} characters", place)
        return Token(kind, text[1:-1], place)
    if kind == "name" and "__" in text:
        raise RuleError("names have no double underscores", place)
    text = _SAME.get(text, text)
    if kind == "name" and text.lower() in ("and", "or", "not", "for", "true", "false"):
        return Token("sign", text.lower(), place)
    return Token("sign" if text == "not" else kind, text, place)
