"""What hand-written loops print: `Epoch 3/100 - Loss: 2.345`, `Epoch [1/5], Step [10/60], Loss: 2`
`Train Epoch: 1 [640/60000 (1%)] Loss: 2.3`, `step 100/1000 loss=0.5` and their relatives."""

from __future__ import annotations

import re
from dataclasses import replace

from runyard.domain.progress.names import canonical_values
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import duration, pairs

FAMILY = "epoch_loss"

_OPEN, _CLOSE = r"[\[(]?\s{0,6}", r"\s{0,4}[\])]?"
_EPOCH = re.compile(
    rf"\bepochs?\b\s{{0,4}}[:#=]?\s{{0,4}}{_OPEN}(\d{{1,9}})(?:\s{{0,4}}(?:/|of)\s{{0,4}}(\d{{1,9}}))?{_CLOSE}",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"\b(?:global[_ ]?step|steps?|iter(?:ation)?s?|batch|update)\b\s{0,4}[:#=]?\s{0,4}"
    rf"{_OPEN}(\d{{1,12}})(?:\s{{0,4}}(?:/|of)\s{{0,4}}(\d{{1,12}}))?{_CLOSE}",
    re.IGNORECASE,
)
# After an epoch: `[640/60000 (1%)]`, `[ 100/5004]`
_INSIDE = re.compile(
    r"^[\s,:|-]{0,6}[\[(]\s{0,8}(\d{1,12})\s{0,3}/\s{0,3}(\d{1,12})\s{0,3}(\(\s{0,3}\d{1,3}(?:\.\d{1,3})?%\))?"
)
_ALONE = re.compile(r"^[\[(]\s{0,8}(\d{1,12})\s{0,3}/\s{0,3}(\d{1,12})\s{0,3}[\])]")
_LEFT = re.compile(r"\beta:?\s{0,3}((?:\d{1,4} days?, )?[\d:]{4,12})", re.IGNORECASE)
_TEST_SET = re.compile(
    r"^(?:test|val|valid|validation|eval)\b(?: set)?(?:[:|-]|(?= \w{2,20}\s{0,2}[:=]))",
    re.IGNORECASE,
)
_NOT_METRICS = frozenset(
    [
        "epoch",
        "epochs",
        "step",
        "steps",
        "iter",
        "iters",
        "iteration",
        "iterations",
        "batch",
        "update",
        "eta",
        "global_step",
        "at",
        "of",
        "in",
        "rank",
        "gpu",
        "version",
        "seed",
        "port",
        "pid",
        "line",
        "device",
        "cuda",
        "seconds",
        "time",
    ]
)
_TELLING = re.compile(
    r"\b(?:[a-z0-9]{0,20}[_ /]?(?:loss|acc|accuracy|ppl|perplexity|reward|error|mae|mse|rmse|lr"
    r"|learning[_ ]rate|f1|auc|iou|bleu)[0-9@]{0,3})\b",
    re.IGNORECASE,
)


def read(line: str) -> Sighting | None:
    epoch, step = _EPOCH.search(line), _STEP.search(line)
    alone = _ALONE.match(line) if epoch is None and step is None else None
    if epoch is None and step is None and alone is None:
        return _test_set(line)
    after = max(match.end() for match in (epoch, step, alone) if match is not None)
    inside = _INSIDE.match(line[epoch.end() :]) if epoch is not None and step is None else None
    values = _metrics(line[after:])
    if not values and not (epoch is not None and inside is None and step is None):
        return None
    if not values:
        return _header(line, epoch) if epoch is not None else None
    left = _LEFT.search(line)
    shown = Sighting(
        FAMILY,
        "train",
        values=values,
        epoch=float(epoch[1]) if epoch else None,
        total_epochs=float(epoch[2]) if epoch and epoch[2] else None,
        eta_s=duration(left[1]) if left and inside is None else None,
    )
    return _with_position(shown, step or alone, inside)


def _with_position(
    shown: Sighting, step: re.Match[str] | None, inside: re.Match[str] | None
) -> Sighting:
    if inside is not None:
        samples = inside[3] is not None
        return replace(
            shown,
            batch=float(inside[1]),
            batches=float(inside[2]),
            batches_are_steps=not samples,
        )
    if step is None:
        return shown
    done, total = int(step[1]), int(step[2]) if step[2] else None
    if shown.epoch is not None and total is not None:  # a step of this epoch
        return replace(shown, batch=float(done), batches=float(total))
    return replace(shown, step=done, total_steps=total)


def _header(line: str, epoch: re.Match[str]) -> Sighting | None:
    """`Epoch 3/10` by itself says that the third begins."""
    alone = not re.search(r"[A-Za-z]", line[: epoch.start()] + line[epoch.end() :])
    if not alone or epoch[2] is None:
        return None
    return Sighting(FAMILY, "header", epoch=float(epoch[1]), total_epochs=float(epoch[2]))


def _test_set(line: str) -> Sighting | None:
    """`Test set: Average loss: 0.05` and `val Loss: 0.6 Acc: 0.7` are about a validation."""
    test_set = _TEST_SET.match(line)
    if test_set is None:
        return None
    found = {
        name if name.startswith(("val_", "test_")) else f"val_{name}": value
        for name, value in _metrics(line[test_set.end() :] or line).items()
    }
    return Sighting(FAMILY, "evaluation", values=found) if found else None


def _metrics(text: str) -> dict[str, float]:
    """All numbers with names, if one of them is what trainings are judged by."""
    if not _TELLING.search(text):
        return {}
    found = pairs(text, skip=_NOT_METRICS)
    return canonical_values(found) if any(_TELLING.search(name) for name in found) else {}
