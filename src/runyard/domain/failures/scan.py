"""The lines of a log that say something about a failure, and how sure each one is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runyard.domain.failures import catalogue, log_text, xid
from runyard.domain.failures.categories import Category
from runyard.domain.failures.evidence import LogLine, RankLog
from runyard.domain.failures.log_text import Text
from runyard.domain.failures.signature import Kind, Signature
from runyard.domain.failures.signatures import cuda, host_memory

MOST_FIRST = 500
MOST_LAST = 3500
STRONG = 0.7
DOUBTED = 0.45  # said in passing: in a warning, or by a text that is often harmless
UNCAUGHT = 0.5  # an exception nobody here knows
MOST_NOISE = 20  # lines of others between the lines of one traceback

_HEADER = "Traceback (most recent call last)"
_BOX = ("│", "╭", "╰", "┃")  # tracebacks drawn as a box hold source code
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_FILE = re.compile(r'\s*File "[^"]{1,500}", line \d{1,9}')
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]{0,200}(?:\[[\w, ]{1,80}\])?(?:\([\w., ]{1,80}\))?(?::|$)")
_SAYS_ERROR = re.compile(
    r"\b[A-Za-z_.]{0,100}(?:Error|Exception)\b|\b(?:error|fatal|ERROR|FATAL|Error)\b|^(?:ba|da|z)?sh:|^/bin/"
)
# Where it was raised can tell what it means; locks of processes live in shared memory.
_RAISED_IN = {
    ("SemLock(", Category.DISK_FULL): Category.SHM,
    ("/configuration_auto.py", Category.CODE): Category.ENV,  # a model newer than the library
}
# Whoever says these knows, even in a warning.
_SURE = frozenset({Category.TIME_LIMIT, Category.PREEMPTED, Category.GPU_HW})


@dataclass(frozen=True, slots=True)
class Observation:
    """One line that means something. `chain` groups the lines of exceptions that led to each
    other; `order` is its place in what was scanned of its log."""

    text: Text
    log_rank: int
    order: int
    category: Category
    kind: Kind
    confidence: float
    chain: int = -1
    exception: bool = False
    signature: Signature | None = None

    @property
    def rank(self) -> int:
        return self.log_rank if self.text.rank is None else self.text.rank

    @property
    def variant(self) -> str:
        return "" if self.signature is None else self.signature.variant

    @property
    def strong(self) -> bool:
        return self.kind is Kind.ROOT and self.confidence >= STRONG


def texts(log: RankLog) -> list[Text]:
    """Its lines in order, each once, no more than can be looked at in a moment."""
    known: dict[int, LogLine] = {line.number: line for line in log.first_errors[:MOST_FIRST]}
    known |= {line.number: line for line in log.tail[-MOST_LAST:]}
    return [
        log_text.read(number, known[number].text, known[number].at) for number in sorted(known)
    ]


def observe(lines: Sequence[Text], log_rank: int = 0) -> list[Observation]:
    """What the lines of one log say; each rank named in them is read as a stream of its own."""
    likely = _likely(lines)
    streams: dict[int | None, _Stream] = {}
    found = []
    for order, text in enumerate(lines):
        stream = streams.setdefault(text.rank, _Stream(len(streams) * 100_000))
        role = stream.place(text.body)
        if role == "frame" or not text.body.strip():
            continue
        seen = _look(text, likely, exception=role == "exception")
        if seen is not None:
            category, kind, confidence, signature = seen
            if role == "exception":
                category = stream.meant(category)
            found.append(
                Observation(
                    text,
                    log_rank,
                    order,
                    category,
                    kind,
                    confidence,
                    stream.chain if stream.open else -1,
                    role == "exception",
                    signature,
                )
            )
    return found


def _likely(lines: Iterable[Text]) -> list[Signature]:
    """Only signatures whose first words are anywhere in the log: one fast search for each."""
    whole = "\n".join(line.body for line in lines)
    return [one for one in catalogue.SIGNATURES if one.parts[0] in whole]


def _look(
    text: Text, likely: Sequence[Signature], *, exception: bool
) -> tuple[Category, Kind, float, Signature | None] | None:
    body = text.body.strip()
    if body.startswith("frame #"):
        return None
    best, score = None, (0.0, 0)
    for signature in likely:
        if signature.matches(body):
            sure = _confidence(signature, text, body, exception=exception)
            length = sum(map(len, signature.parts))
            if (sure, length) > score:
                best, score = signature, (sure, length)
    if best is None:
        return (Category.UNKNOWN, Kind.ROOT, UNCAUGHT, None) if exception else None
    if best.variant == cuda.XID:
        meant = xid.meaning(xid.in_line(body) or 0)
        if meant is None:
            return best.category, Kind.ADVICE, score[0], best
        return meant, best.kind, score[0], best
    return best.category, best.kind, score[0], best


def _confidence(signature: Signature, text: Text, body: str, *, exception: bool) -> float:
    known = signature.category in _SURE or signature.variant == host_memory.CONFIRMED
    if exception or known:
        return signature.confidence
    doubtful = text.warns or (signature.loose and _SAYS_ERROR.search(body) is None)
    if signature.kind is Kind.ROOT and doubtful:
        return min(signature.confidence, DOUBTED)
    return signature.confidence


class _Stream:
    """Follows the tracebacks of one rank through its lines."""

    def __init__(self, first_chain: int) -> None:
        self.chain = first_chain
        self.open = False  # within an exception, its message or what it led to
        self._inside = False
        self._noise = 0
        self._chained = False
        self._since = 0  # lines since the last exception line
        self._hints: set[str] = set()  # what its frames name
        self._indent = 0  # of the whole traceback

    def meant(self, category: Category) -> Category:
        """What an exception of this category means in the traceback it ends."""
        named = [hint for hint in self._hints if (hint, category) in _RAISED_IN]
        return _RAISED_IN[named[0], category] if named else category

    def place(self, body: str) -> str:
        """frame, exception or other."""
        stripped = body.strip()
        if _HEADER in stripped:
            self._begin()
            self._indent = len(body) - len(body.lstrip())
            return "frame"
        if stripped.startswith(_BOX):
            return "frame"
        if stripped in _CHAINED:
            self._chained = True
            return "frame"
        if not self._inside:
            if _FILE.match(body):
                self._begin()
                self._hint(stripped)
                return "frame"
            self._since += 1
            if self.open and self._since > 4 and not self._chained:
                self.open = False
            return "other"
        # Behind the prefix of a logger one space is no indent.
        indent = len(body) - len(body.lstrip()) - self._indent
        if not stripped or indent >= 2:
            self._hint(stripped)
            return "frame"
        if _EXCEPTION.match(stripped):
            self._inside, self.open, self._since, self._noise = False, True, 0, 0
            return "exception"
        self._noise += 1
        if self._noise > MOST_NOISE:
            self._inside = False
        return "other"

    def _hint(self, frame: str) -> None:
        self._hints |= {hint for hint, _ in _RAISED_IN if hint in frame}

    def _begin(self) -> None:
        # A traceback inside the message of another (of a worker) belongs to it.
        goes_on = self._chained or (self.open and self._since <= 3)
        if not goes_on and not self._inside:
            self.chain += 1
        self._inside, self._chained, self._noise = True, False, 0
        self._hints, self._indent = set(), 0
