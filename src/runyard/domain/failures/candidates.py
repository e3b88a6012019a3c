"""Which lines are worth a closer look: one fast search of the whole text for each word, instead of
every word in every line."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runyard.domain.failures import catalogue, tracebacks
from runyard.domain.failures.log_text import Text
from runyard.domain.failures.signature import Signature

LAST = 30  # lines of the end
MOST_PLACES = 1000  # of one word; of more only the first and the last
# What programs of any language begin with when they tell of an error.
_STATEMENTS = (
    "rror", "RROR", "xception", "panic", "atal", "ATAL", "what():", "sh: ", "Flags parsing",
    "GPUassert", "ncaught ", "nhandled ", "ailed to ", "annot ", "nable to ",
)  # fmt: skip

# Letters of any language stay, all else parts words: far faster than an expression.
_APART = bytes(byte if byte >= 128 or chr(byte).isalpha() else 32 for byte in range(256))


def _words(text: str) -> list[bytes]:
    return text.encode("utf-8", "surrogatepass").translate(_APART).split()


def _longest(words: Sequence[bytes]) -> bytes:
    return max(words, key=len, default=b"")


# Of each text the longest word that stands apart in it, and the longest that may be part of one:
# where these are in no line, the text is neither.
_TELLING = {
    cue: (_longest(_words(f"x{cue}x")[1:-1]), _longest(_words(cue)))
    for cue in (
        *(cue for signature in catalogue.SIGNATURES for cue in signature.cues),
        *_STATEMENTS,
        *tracebacks.CUES,
    )
}


@dataclass(frozen=True, slots=True)
class Found:
    signatures: dict[int, list[Signature]]  # by the place of the line
    statements: set[int]
    lines: set[int]  # all of them, and those of tracebacks


def found_in(lines: Sequence[Text]) -> Found:
    bodies = [line.body for line in lines]
    whole = "\n".join(bodies)
    spoken = _spoken(whole)
    starts, at = [], 0
    for body in bodies:
        starts.append(at)
        at += len(body) + 1
    signatures: dict[int, list[Signature]] = defaultdict(list)
    places: dict[str, set[int]] = {}
    for signature in catalogue.SIGNATURES:
        for cue in signature.cues:
            if cue not in spoken:
                continue
            if cue not in places:
                places[cue] = _lines_with((cue,), whole, starts)
            for place in places[cue]:
                signatures[place].append(signature)
    statements = _lines_with(spoken.intersection(_STATEMENTS), whole, starts)
    # The last lines are read however they begin: often a program only says why it ends.
    statements |= {place for place, line in enumerate(lines) if line.level and line.error}
    statements |= set(range(max(0, len(lines) - LAST), len(lines)))
    traces = _lines_with(spoken.intersection(tracebacks.CUES), whole, starts)
    return Found(signatures, statements, {*signatures, *statements, *traces})


def _spoken(whole: str) -> set[str]:
    """Texts whose words are all there, so that it is worth to look for them."""
    words = {b"", *_words(whole)}
    joined = b"\n".join(words)
    return {cue for cue, (apart, part) in _TELLING.items() if apart in words and part in joined}


def _lines_with(words: Iterable[str], whole: str, starts: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for word in words:
        at, left = whole.find(word), MOST_PLACES
        while at >= 0 and left:
            line = bisect_right(starts, at) - 1
            found.add(line)
            if line + 1 >= len(starts):
                break
            left -= 1
            at = whole.find(word, starts[line + 1])
        if at >= 0 and not left:
            found |= _last_lines_with(word, whole, starts)
    return found


def _last_lines_with(word: str, whole: str, starts: Sequence[int]) -> set[int]:
    found: set[int] = set()
    at = whole.rfind(word)
    for _ in range(MOST_PLACES):
        if at < 0:
            break
        line = bisect_right(starts, at) - 1
        found.add(line)
        at = whole.rfind(word, 0, starts[line])
    return found
