"""A job's command with its parameters filled in."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_IN_DOUBLE_QUOTES = re.compile(r'([\\"$`])')


@dataclass(frozen=True, slots=True)
class Places:
    """What a command may name besides its parameters."""

    output_dir: str
    checkpoint_dir: str
    resume_from: str | None = None


def render(
    command: str | Sequence[str], params: Mapping[str, Any], places: Places
) -> tuple[str, ...]:
    """What to execute: a string by /bin/sh -c with quoted values, a list as it is.

    `{name}` is replaced for declared parameters and the three places only; every other brace,
    `${name}` included, stays.
    """
    values = {name: param_text(value) for name, value in params.items()}
    values["output_dir"] = places.output_dir
    values["checkpoint_dir"] = places.checkpoint_dir
    values["resume_from"] = places.resume_from or ""
    pattern = re.compile(r"(?<!\$)\{(" + "|".join(map(re.escape, values)) + r")\}")
    if isinstance(command, str):
        return ("/bin/sh", "-c", _fill_shell(command, pattern, values))
    return tuple(pattern.sub(lambda found: values[found[1]], part) for part in command)


def param_text(value: Any) -> str:
    """A parameter as text, the same in the command and in the environment."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _fill_shell(text: str, pattern: re.Pattern[str], values: Mapping[str, str]) -> str:
    parts = []
    inside, at = "", 0
    for found in pattern.finditer(text):
        inside = _inside_after(text, at, found.start(), inside)
        parts += [text[at : found.start()], _quoted(values[found[1]], inside)]
        at = found.end()
    return "".join([*parts, text[at:]])


def _quoted(value: str, inside: str) -> str:
    """The value as part of one word, wherever the person put it: in the open, inside quotes of
    their own, or in a comment."""
    if inside == "'":
        return value.replace("'", "'\\''")
    if inside == '"':
        return _IN_DOUBLE_QUOTES.sub(r"\\\1", value)
    if inside == "#":
        return value.replace("\n", " ")
    return shlex.quote(value)


def _inside_after(text: str, at: int, end: int, inside: str) -> str:
    """What the shell is inside of at `end` (a quote, a comment, or nothing), if it was inside of
    `inside` at `at`."""
    while at < end:
        char = text[at]
        if inside == "#":
            inside = "" if char == "\n" else inside
        elif inside == "'":
            inside = "" if char == "'" else inside
        elif char == "\\":
            at += 1
        elif inside == '"':
            inside = "" if char == '"' else inside
        elif char in "'\"" or (char == "#" and _begins_word(text, at)):
            inside = char
        at += 1
    return inside


def _begins_word(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] in " \t\n;&|()"
