"""Errors that are only told of: quoted from somewhere, or followed by how the program went on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runyard.domain.failures.log_text import Text

NEXT = 2  # lines below it in which a program says how it goes on
_SEEN = 400  # characters of a line

# Texts that a program works on, not what it says itself; some names are also used otherwise.
_WORKED_ON = (
    r"prompts?|responses?|completions?|questions?|answers?|instructions?|samples?|examples?"
    r"|generat(?:ed|ions?)|rollouts?|queries|query|captions?|transcripts?|documents?"
    r"|(?:user|assistant|model)(?: (?:turn|message|says))?"
)
_MAYBE_WORKED_ON = (
    r"text|content|title|body|input|output|target|label|reference|decoded|row|record|post"
    r"|comment|snippet|string"
)
_QUOTES = re.compile(
    rf"(?i)[^:={{]{{0,80}}\b(?:{_WORKED_ON})(?: ?#?[\d/]{{1,12}})?\]? ?[:=>]{{1,2}} ?\S"
    rf"|[^:={{]{{0,80}}\b(?:{_MAYBE_WORKED_ON})(?: ?#?\d{{1,9}})?\]? ?[:=]{{1,2}} ?['\"“]"
)
_RECORD = re.compile(rf"(?i)['\"](?:{_WORKED_ON}|{_MAYBE_WORKED_ON})['\"]: ?['\"\[]")
_OF_A_LOGGER = re.compile(r"(?i)['\"](?:level|levelname|severity|error|exception|lvl)['\"]:")
_GOES_ON = re.compile(
    r"(?i)\bretrying\b|\bretry (?:\d{1,4}|attempt|loop|in \d)|\btry(?:ing)? again (?:in|with) "
    r"|\btrying (?:batch|with|another|next|a |the |mirror|fallback|smaller|again)"
    r"|\busing .{1,80} instead\b|\bfall(?:ing|s|en)?[ -]?back\b|\bfallback\b"
    r"|\b(?:continuing|continue) (?:with|without|from|anyway|training|on)\b|\bcontinuing\b"
    r"|\bwill continue\b|\bresum(?:ing|ed) normal|\b(?:error|issue|problem) resolved\b"
    r"|\brecovered\b|\bskip(?:ped|ping)\b|\bignor(?:ed|ing)\b|\bsucceeded\b"
    r"|\breduc(?:ing|ed) (?:the )?batch|\bhandled\b|\bnon-fatal\b|\bswitch(?:ing|ed) to\b"
    r"|\bwill (?:retry|try again|be retried|be skipped)\b|\bdisabl(?:ing|ed) \w"
)
_MENTIONS = re.compile(
    r"(?i)\b(?:no|without|avoids?|prevents?)(?: an?| any)? [\"'`“]?$"
    r"|\b(?:any|not|hit|sees?|gets?|(?:may|might|could|would) fail with|or|against|like)"
    r"(?: an?| the)? [\"'`“]$"
)
# Said of the end itself, whatever went on before.
_GIVES_UP = re.compile(r"(?i)\bgiving up\b|\bgave up\b|\bno (?:more )?retries\b|\bnot retrying\b")


def quoted(text: Text) -> bool:
    """Part of a text that the program works on: indented, behind its name, or in a record."""
    body = text.body[:_SEEN]
    if body.startswith(("    ", "\t")) or _QUOTES.match(body):
        return True
    if not body.startswith(("{", "[{")):
        return False
    return _RECORD.search(body) is not None and _OF_A_LOGGER.search(body) is None


def announced(before: Text, error: Text) -> bool:
    """A logger says before a traceback how the program goes on."""
    return before.rank == error.rank and _says_so(before.body)


def mentioned(body: str, words: str) -> bool:
    """Named as something that might be, or is not: `no "..."`, `if you see "..."`."""
    at = body.find(words)
    while at > 0 and body[at - 1].isalnum():  # some signatures begin within a word
        at -= 1
    return at > 0 and _MENTIONS.search(body, max(0, at - 40), at) is not None


def went_on(lines: Sequence[Text], order: int) -> bool:
    """It says itself, or the next lines of the same rank do, how the program went on."""
    text = lines[order]
    if _GIVES_UP.search(text.body[:_SEEN]):
        return False
    if _says_so(text.body):
        return True
    below = (line for line in lines[order + 1 : order + 1 + NEXT] if line.rank == text.rank)
    return any(_says_so(line.body) for line in below if not line.body.startswith(" "))


def _says_so(body: str) -> bool:
    said = body[:_SEEN]
    return _GOES_ON.search(said) is not None and _GIVES_UP.search(said) is None
