"""Errors that are only told of: quoted from somewhere, or followed by how the program went on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runyard.domain.failures.log_text import Text

NEXT = 2  # lines below it in which a program says how it goes on
_SEEN = 400  # characters of a line

# Texts that a program works on, not what it says itself.
_QUOTES = re.compile(
    r"(?i)[^:={]{0,80}\b(?:prompts?|responses?|completions?|questions?|answers?|instructions?"
    r"|samples?|examples?|generat(?:ed|ions?)|rollouts?|queries|query|captions?|transcripts?"
    r"|documents?|(?:user|assistant|model)(?: (?:turn|message|says))?)"
    r"(?: ?#?[\d/]{1,12})?['\"]?\]? ?[:=>]{1,2} ?\S"
    r"|[^:={]{0,80}\b(?:text|content|title|body|input|output|target|label|reference|decoded"
    r"|row|record|post|comment|snippet|string)(?: ?#?\d{1,9})?['\"]?\]? ?[:=]{1,2} ?['\"“]"
)
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
# Said of the end itself, whatever went on before.
_GIVES_UP = re.compile(r"(?i)\bgiving up\b|\bgave up\b|\bno (?:more )?retries\b|\bnot retrying\b")


def quoted(text: Text) -> bool:
    """Part of a text that the program works on: indented below a line, or behind its name."""
    body = text.body[:_SEEN]
    return body.startswith(("    ", "\t")) or _QUOTES.match(body) is not None


def went_on(lines: Sequence[Text], order: int) -> bool:
    """It says itself, or the next lines of the same rank do, how the program went on."""
    text = lines[order]
    if _GIVES_UP.search(text.body[:_SEEN]):
        return False
    if _GOES_ON.search(text.body[:_SEEN]):
        return True
    below = lines[order + 1 : order + 1 + NEXT]
    return any(
        line.rank == text.rank
        and _GOES_ON.search(line.body[:_SEEN]) is not None
        and _GIVES_UP.search(line.body[:_SEEN]) is None
        for line in below
    )
