"""How long a training will be, as its command says: `--epochs 10`, `max_steps=1000`. Many loops
never print it. `--num_train_epochs` is left out: the bar of such programs runs over all epochs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = r"(?:^|[\s'\"]|--?|\.)"
_EPOCHS = re.compile(
    rf"{_WORD}(?:(?:num|max|n|total)[_-])?epochs?(?:\s{{1,3}}|=|:)(\d{{1,9}})(?![\w.])"
)
_STEPS = re.compile(
    rf"{_WORD}(?:(?:num|max|n|total)[_-](?:train(?:ing)?[_-])?)(?:steps|iters|iterations|updates)"
    r"(?:\s{1,3}|=|:)(\d{1,12})(?![\w.])"
)


@dataclass(frozen=True, slots=True)
class Hints:
    total_steps: int | None = None
    total_epochs: float | None = None


def from_command(command: str | Sequence[str]) -> Hints:
    text = command if isinstance(command, str) else " ".join(command)
    text = text[:65_536]
    steps, epochs = _STEPS.findall(text), _EPOCHS.findall(text)
    return Hints(
        total_steps=int(steps[-1]) or None if steps else None,
        total_epochs=float(epochs[-1]) or None if epochs else None,
    )
