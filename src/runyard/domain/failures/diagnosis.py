"""What went wrong, with the proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from runyard.domain.failures.categories import Category, FailureType
from runyard.domain.reasons import Reason

# The fingerprint of a failure that nothing explains begins so: two of them may be different.
NO_LINE = "unknown: no line"


@dataclass(frozen=True, slots=True)
class ProofLine:
    """`number` counts the lines of the rank's log from 1; 0 is a line of the kernel's log."""

    rank: int
    number: int
    text: str
    kind: str = "root"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`fingerprint` is equal for the same failure of another attempt. `explanation` is a code
    with parameters: the category, or a special case of it. `facts` are what a plan needs of the
    failure: the GPU, the module, the port, the first bad step ..."""

    failure_type: FailureType
    category: Category
    confidence: float
    fingerprint: str
    explanation: Reason
    root: ProofLine | None = None
    proof: tuple[ProofLine, ...] = ()  # the root and other lines that say the same
    cascade: tuple[ProofLine, ...] = ()  # what followed from it, in order
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variant(self) -> str:
        return str(self.facts.get("variant", ""))


def as_mapping(diagnosis: Diagnosis) -> dict[str, Any]:
    """As it is kept with the attempt and sent to people."""
    return {
        "failure_type": diagnosis.failure_type.value,
        "category": diagnosis.category.value,
        "confidence": round(diagnosis.confidence, 2),
        "fingerprint": diagnosis.fingerprint,
        "explanation": {
            "code": diagnosis.explanation.code,
            "params": dict(diagnosis.explanation.params),
        },
        "root": None if diagnosis.root is None else asdict(diagnosis.root),
        "proof": [asdict(line) for line in diagnosis.proof],
        "cascade": [asdict(line) for line in diagnosis.cascade],
        "facts": dict(diagnosis.facts),
    }


def from_mapping(kept: Mapping[str, Any]) -> Diagnosis:
    told = kept["explanation"]
    return Diagnosis(
        FailureType(kept["failure_type"]),
        Category(kept["category"]),
        kept["confidence"],
        kept["fingerprint"],
        Reason(told["code"], told["params"]),
        None if kept["root"] is None else ProofLine(**kept["root"]),
        tuple(ProofLine(**line) for line in kept["proof"]),
        tuple(ProofLine(**line) for line in kept["cascade"]),
        kept["facts"],
    )
