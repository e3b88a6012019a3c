"""The lines of a log that say something about a failure, and how sure each one is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from runyard.domain.failures import (
    candidates,
    handled,
    log_text,
    meaning,
    statement,
    tracebacks,
    wrapped,
    xid,
)
from runyard.domain.failures.categories import Category
from runyard.domain.failures.evidence import LogLine, RankLog
from runyard.domain.failures.log_text import Text
from runyard.domain.failures.observation import SAID, Observation
from runyard.domain.failures.signature import Kind, Signature
from runyard.domain.failures.signatures import cuda, host_memory
from runyard.domain.failures.statement import Statement
from runyard.domain.failures.tracebacks import Stream

MOST_FIRST = 500
MOST_LAST = 3500
MOST_JUDGED = 400  # errors without a signature
DOUBTED = 0.45  # said in passing: in a warning, or by a text that is often harmless
UNCAUGHT = 0.5  # an exception nobody here knows
BELOW = 3  # lines that may belong to a message

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
Seen = tuple[Category, Kind, float, Signature | None]


def texts(log: RankLog) -> list[Text]:
    """Its lines in order, each once, no more than can be looked at in a moment."""
    known: dict[int, LogLine] = {line.number: line for line in log.first_errors[:MOST_FIRST]}
    known |= {line.number: line for line in log.tail[-MOST_LAST:]}
    return wrapped.opened(
        [log_text.read(number, known[number].text, known[number].at) for number in sorted(known)]
    )


def observe(lines: Sequence[Text], log_rank: int = 0) -> list[Observation]:
    """What the lines of one log say; each rank named in them is read as a stream of its own."""
    return _Reading(lines, log_rank).observations()


class _Reading:
    """One pass through the lines of one log."""

    def __init__(self, lines: Sequence[Text], log_rank: int) -> None:
        self._lines = lines
        self._rank = log_rank
        self._found = candidates.found_in(lines)
        self._streams: dict[int | None, Stream] = {}
        self._began: dict[int | None, int] = {}  # where the last traceback of a rank does
        self._survived: tuple[Observation, Observation] | None = None  # the last: was, became
        self._judged = 0

    def observations(self) -> list[Observation]:
        seen = []
        worth = self._found.lines
        for order, text in enumerate(self._lines):
            stream = self._streams.get(text.rank)
            if stream is None:
                stream = Stream(len(self._streams) * 100_000)
                self._streams[text.rank] = stream
            if order not in worth and stream.idle:
                continue
            one = self._line(order, text, stream)
            if one is not None:
                seen.append(one)
        return self._without_doubt(seen)

    def _without_doubt(self, seen: list[Observation]) -> list[Observation]:
        """The last exception of all ended the program, whatever was said after it."""
        if self._survived is None:
            return seen
        was, became = self._survived
        later = (one for one in seen if one.exception and one.kind is Kind.ROOT)
        if any(one.order > was.order for one in later):
            return seen
        return [was if one is became else one for one in seen]

    def _line(self, order: int, text: Text, stream: Stream) -> Observation | None:
        role = stream.place(text.body)
        if role == "frame" and tracebacks.HEADER in text.body and not stream.chained:
            self._began[text.rank] = order
        if role == "frame" or not text.body.strip():
            return None
        exception = role == "exception"
        said = self._statement(order, text, exception=exception)
        seen = self._look(order, text, said, stream, exception=exception)
        if seen is None:
            return None
        category, kind, confidence, signature = seen
        if exception and stream.ignored:
            kind = Kind.TEARDOWN
        elif exception and category is Category.CKPT_CORRUPT and stream.of_child:
            kind = Kind.CASCADE  # what it read was cut off as its parent failed
        ended = exception or (said is not None and said.ends)
        chain = stream.chain if stream.open else -1
        one = Observation(
            text, self._rank, order, category, kind, confidence, chain, ended, signature
        )
        return self._weighed(one, stream, exception=exception) if kind is Kind.ROOT else one

    def _weighed(self, one: Observation, stream: Stream, *, exception: bool) -> Observation | None:
        """What is only quoted, or was survived, ends nothing."""
        words = "" if one.signature is None or one.exception else one.signature.parts[0]
        if words and handled.mentioned(one.text.body, words):
            return None
        if _known(one.category, one.signature):
            return one
        if one.text.packed:  # told of by a logger: what Python prints itself comes first
            one = replace(one, exception=False)
        belongs = exception or one.exception or stream.open
        quoted = stream.indented if exception else not belongs and handled.quoted(one.text)
        doubted = replace(one, confidence=min(one.confidence, DOUBTED), exception=False)
        if quoted:
            return doubted
        if one.confidence > DOUBTED and self._went_on(one.order, one.text, exception=exception):
            if exception:
                self._survived = one, doubted
            return doubted
        return one

    def _went_on(self, order: int, text: Text, *, exception: bool) -> bool:
        """So it is said beside the error, or by a logger before its traceback."""
        if handled.went_on(self._lines, order):
            return True
        began = self._began.get(text.rank, 0) if exception else 0
        return began > 0 and handled.announced(self._lines[began - 1], text)

    def _statement(self, order: int, text: Text, *, exception: bool) -> Statement | None:
        if exception:
            said = statement.exception(text.body.strip())
        elif order in self._found.statements:
            before = self._lines[order - 1].body if order else ""
            found = statement.of_line(text.body, before)
            if text.fatal or (found is None and text.error):
                name = "" if found is None else found.name
                found = Statement(name, text.body.strip(), text.fatal)
            if found is None:
                return None
            said = found
        else:
            return None
        if not said.message and order + 1 < len(self._lines):
            said = Statement(said.name, self._lines[order + 1].body.strip(), said.ends)
        return said

    def _look(
        self, order: int, text: Text, said: Statement | None, stream: Stream, *, exception: bool
    ) -> Seen | None:
        body = text.body.strip()
        if body.startswith("frame #"):
            return None
        ends = exception or (said is not None and said.ends)
        best, sure = self._best(order, text, body, exception=ends)
        if best is not None and best.variant == cuda.XID:
            meant = xid.meaning(xid.in_line(body) or 0)
            kind = Kind.ADVICE if meant is None else best.kind
            return meant or best.category, kind, sure, best
        if best is not None and not best.general:
            category = self._where(best.category, stream) if exception else best.category
            if said is not None:
                category = meaning.answered(category, said.message)
            return category, best.kind, sure, best
        meant_by = self._meaning(order, said, stream, exception=exception)
        if best is None:
            if meant_by is not None:
                return meant_by[0], Kind.ROOT, meant_by[1], None
            return (Category.UNKNOWN, Kind.ROOT, UNCAUGHT, None) if exception else None
        category = self._where(best.category, stream)
        closer = meant_by is not None and meant_by[0] is not Category.CODE
        if meant_by is not None and closer and category is best.category:
            category = meant_by[0]
        return category, best.kind, sure, best

    def _best(
        self, order: int, text: Text, body: str, *, exception: bool
    ) -> tuple[Signature | None, float]:
        best, score = None, (False, 0.0, 0)
        for signature in self._found.signatures.get(order, ()):
            if signature.matches(body):
                sure = _confidence(signature, text, body, exception=exception)
                length = sum(map(len, signature.parts))
                if (not signature.general, sure, length) > score:
                    best, score = signature, (not signature.general, sure, length)
        return best, score[1]

    def _meaning(
        self, order: int, said: Statement | None, stream: Stream, *, exception: bool
    ) -> meaning.Meaning | None:
        if said is None or self._judged >= MOST_JUDGED:
            return None
        self._judged += 1
        text = self._lines[order]
        below = self._lines[order + 1 : order + 1 + BELOW] if said.ends else ()
        more = " ".join(line.body.strip() for line in below if line.rank == text.rank)
        found = meaning.judge(said, tuple(stream.frames) if exception else (), more)
        if found is None or said.ends:
            return found
        doubtful = DOUBTED if log_text.warns(text) else SAID
        return found[0], min(found[1], doubtful)

    def _where(self, category: Category, stream: Stream) -> Category:
        """What an exception of this category means in the traceback it ends."""
        if not any(category is one for _, one in _RAISED_IN):
            return category
        frames = "\n".join(stream.frames)
        meant = (
            new for (hint, of), new in _RAISED_IN.items() if of is category and hint in frames
        )
        return next(meant, category)


def _known(category: Category, signature: Signature | None) -> bool:
    """Whoever says it knows, however it is said."""
    confirmed = signature is not None and signature.variant == host_memory.CONFIRMED
    return category in _SURE or confirmed


def _confidence(signature: Signature, text: Text, body: str, *, exception: bool) -> float:
    known = _known(signature.category, signature)
    if exception or known or signature.kind is not Kind.ROOT:
        return signature.confidence
    doubtful = log_text.warns(text) or (signature.loose and _SAYS_ERROR.search(body) is None)
    return min(signature.confidence, DOUBTED) if doubtful else signature.confidence
