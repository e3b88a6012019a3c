"""The Trainer of transformers: `{'loss': 2.3, 'learning_rate': 5e-05, 'epoch': 0.1}`, whose values
newer versions write in quotes, and the head that names the totals."""

from __future__ import annotations

import re

from runyard.domain.progress.names import canonical_values
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import NUMBER, count, number

FAMILY = "huggingface"

_ENTRY = re.compile(rf"'([A-Za-z][\w./@-]{{0,100}})':\s?'?({NUMBER})'?\s{{0,2}}(?=[,}}])")
_HEAD = re.compile(r"\b(Num Epochs|Total optimization steps)\s{0,3}=\s{0,3}([\d,]{1,16})")
_MARKS = frozenset(
    [
        "loss",
        "eval_loss",
        "grad_norm",
        "learning_rate",
        "train_runtime",
        "reward",
        "rewards/chosen",
        "eval_runtime",
    ]
)


def read(line: str) -> Sighting | None:
    if " = " in line and (head := _HEAD.search(line)):
        return _hint(head)
    start = line.find("{'")
    if start < 0 or not line.endswith("}") or "'epoch'" not in line:
        return None
    shown = {name: number(text) for name, text in _ENTRY.findall(line[start:])}
    values = {name: value for name, value in shown.items() if value is not None}
    epoch = values.pop("epoch", None)
    if epoch is None or not (values.keys() & _MARKS or any("loss" in name for name in values)):
        return None
    if "train_runtime" in values:  # the mean over all steps is no point of the loss
        values = {
            name: value
            for name, value in values.items()
            if name not in ("train_runtime", "train_loss", "total_flos")
        }
        kind = "summary"
    else:
        kind = "evaluation" if all(name.startswith("eval") for name in values) else "train"
    return Sighting(FAMILY, kind, epochs_done=epoch, values=canonical_values(values))


def _hint(head: re.Match[str]) -> Sighting | None:
    total = count(head[2])
    if not total:
        return None
    if head[1] == "Num Epochs":
        return Sighting(FAMILY, "hint", total_epochs=float(total))
    return Sighting(FAMILY, "hint", total_steps=total)
