"""A line of a log that means something."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.domain.failures.categories import Category
from runyard.domain.failures.log_text import Text
from runyard.domain.failures.signature import Kind, Signature

STRONG = 0.7
SAID = 0.6  # an error that programs say also of what they survive


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
