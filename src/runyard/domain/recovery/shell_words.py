"""The words of a command with the places where they are written, so that one can be changed and
the rest stays as the person wrote it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_ENDS = " \t\n;&|()<>"


@dataclass(frozen=True, slots=True)
class Word:
    """`text` is what the program gets; `part` tells which element of an argv list it is in.
    `plain`: the shell changes nothing in it (no variable, command or pattern)."""

    text: str
    raw: str
    part: int
    start: int
    end: int
    plain: bool
    in_shell: bool


def words(command: str | Sequence[str]) -> list[Word]:
    """Also those inside the text that an argv list gives to a shell (`bash -c "..."`)."""
    if isinstance(command, str):
        return _of_shell(command, 0)
    script = _script_at(command)
    found = []
    for part, text in enumerate(command):
        if part == script:
            found += _of_shell(text, part)
        else:
            found.append(Word(text, text, part, 0, len(text), True, False))
    return found


def _script_at(argv: Sequence[str]) -> int | None:
    if not argv or argv[0].rpartition("/")[2] not in _SHELLS:
        return None
    for index, word in enumerate(argv[1:-1], 1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return index + 1
        if not word.startswith("-"):
            return None
    return None


def _of_shell(text: str, part: int) -> list[Word]:
    found, at = [], 0
    while at < len(text):
        if text[at] in _ENDS:
            at += 1
        elif text[at] == "#":
            while at < len(text) and text[at] != "\n":
                at += 1
        elif text.startswith("\\\n", at):
            at += 2
        else:
            word = _word(text, at, part)
            found.append(word)
            at = word.end
    return found


def _word(text: str, start: int, part: int) -> Word:
    at, quote, plain = start, "", True
    said: list[str] = []
    while at < len(text):
        char = text[at]
        if quote == "'":
            if char == "'":
                quote = ""
            else:
                said.append(char)
        elif char == "\\" and at + 1 < len(text):
            at += 1
            if text[at] != "\n":
                said.append(text[at])
        elif char in "$`":
            plain = False
            said.append(char)
        elif quote == '"':
            if char == '"':
                quote = ""
            else:
                said.append(char)
        elif char in "'\"":
            quote = char
        elif char in _ENDS:
            break
        else:
            plain = plain and char not in "*?["
            said.append(char)
        at += 1
    at = min(at, len(text))
    return Word("".join(said), text[start:at], part, start, at, plain, True)


def replaced(
    command: str | Sequence[str], changes: Sequence[tuple[Word, str]]
) -> str | tuple[str, ...]:
    """`command` with words written anew; each is given as it should stand there."""
    parts = [command] if isinstance(command, str) else list(command)
    for word, raw in sorted(changes, key=lambda one: (one[0].part, one[0].start), reverse=True):
        text = parts[word.part]
        parts[word.part] = text[: word.start] + raw + text[word.end :]
    return parts[0] if isinstance(command, str) else tuple(parts)


def rewritten(word: Word, old: str, new: str) -> str:
    """The word with `old`, its end, replaced; quotes of the person stay."""
    if not word.in_shell:
        return word.raw[: len(word.raw) - len(old)] + new
    at = word.raw.rfind(old)
    simple = shlex.quote(new) == new
    if at >= 0 and simple and not word.raw[at + len(old) :].strip("'\""):
        return word.raw[:at] + new + word.raw[at + len(old) :]
    return shlex.quote(word.text[: len(word.text) - len(old)] + new)
