"""What a training does just now, in one word, and the log lines that say so without a number."""

from __future__ import annotations

import re

from runyard.domain.progress.point import Sighting

FAMILY = "phase"

LOADING = "loading"
TRAINING = "training"
EVALUATING = "evaluating"
SAVING = "saving"
FINISHING = "finishing"
ALL = (LOADING, TRAINING, EVALUATING, SAVING, FINISHING)
# No step is to be expected for a while.
PAUSES = frozenset(ALL) - {TRAINING}

_LINES = (
    (
        EVALUATING,
        re.compile(
            r"\*{3,} ?running (?:evaluation|prediction|validation|testing)"
            r"|\b(?:running|starting|begin(?:ning)?|start of) (?:the )?"
            r"(?:evaluation|validation|testing|inference)\b"
            r"|^(?:evaluating|validating)\b",
            re.IGNORECASE,
        ),
    ),
    (
        SAVING,
        re.compile(
            r"\b(?:saving|writing|storing|dumping) (?:(?:the|a|an|current|new|best|last|final|"
            r"full|sharded|distributed|async|model|training|optimizer|trainer|pipeline) ){0,4}"
            r"(?:checkpoint|model|state|weights|snapshot|parameters|optimizer)s?\b"
            r"|\[Torch\] Saving \S|\bsaving to \S*(?:ckpt|checkpoint)",
            re.IGNORECASE,
        ),
    ),
    (
        LOADING,
        re.compile(
            r"\b(?:loading|restoring|resuming) (?:(?:the|a|from|latest|last|model) ){0,4}"
            r"(?:checkpoint|model|weights|tokenizer|dataset|state)s?\b",
            re.IGNORECASE,
        ),
    ),
    (
        FINISHING,
        re.compile(
            r"^(?:training (?:completed|complete|finished|is done|done)\b|finished training\b)",
            re.IGNORECASE,
        ),
    ),
)
# One of these is in every line above: most lines are done with after one look.
_WORDS = re.compile(
    r"evaluat|validat|testing|prediction|inference|saving|writing|storing|dumping|loading"
    r"|restoring|resuming|training",
    re.IGNORECASE,
)
LONGEST_LINE = 400  # a longer one is no announcement


def read(line: str) -> Sighting | None:
    if len(line) > LONGEST_LINE or _WORDS.search(line) is None:
        return None
    for phase, said in _LINES:
        if said.search(line):
            return Sighting(FAMILY, "pause", phase=phase)
    return None
