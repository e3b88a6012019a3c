"""nanoGPT and its descendants: `iter 100: loss 2.31, time 12ms, mfu 3%`,
`step 250: train loss 2.1, val loss 2.3`, `step:10/510 train_loss:4.1`, `step 10/195 | loss 9`."""

from __future__ import annotations

import re

from runyard.domain.progress.names import canonical_values
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import NUMBER, number

FAMILY = "nanogpt"

_ITER = re.compile(
    rf"^iter (\d{{1,12}}): loss ({NUMBER}), time ({NUMBER})ms(?:, mfu ({NUMBER})%)?"
)
_EVALUATION = re.compile(
    rf"^step (\d{{1,12}}): train loss ({NUMBER}), val loss ({NUMBER})(?![\w.])"
)
_COLONS = re.compile(r"^step:(\d{1,12})/(\d{1,12}) (.{1,1000})$")
_COLON_PAIR = re.compile(rf"\b([a-z_]{{1,40}}):({NUMBER})(ms|s)?(?![\w.])")
_BARS = re.compile(r"^step\s{1,8}(\d{1,12})(?:/(\d{1,12}))?\s{0,4}\|(.{1,2000})$")
_BAR_PART = re.compile(rf"^\s{{0,4}}([A-Za-z][A-Za-z/_ ]{{0,40}}?):?\s{{1,4}}({NUMBER})(ms)?\b")
_BAR_UNIT = re.compile(rf"^\s{{0,4}}({NUMBER})\s{{0,2}}(ms|tok/s|tokens/s)\s{{0,4}}$")


def read(line: str) -> Sighting | None:
    if match := _ITER.match(line):
        return _iteration(match)
    if match := _EVALUATION.match(line):
        values = {"val_loss": float(match[3]), "train_eval_loss": float(match[2])}
        return Sighting(FAMILY, "evaluation", step=int(match[1]), values=values)
    if match := _COLONS.match(line):
        return _colons(match)
    if match := _BARS.match(line):
        return _bars(match)
    return None


def _iteration(match: re.Match[str]) -> Sighting:
    values = {"loss": float(match[2])}
    utilisation = number(match[4]) if match[4] else None
    if utilisation is not None and utilisation >= 0:  # -100 % until it is known
        values["mfu"] = utilisation / 100
    return _with_time(int(match[1]), None, values, float(match[3]))


def _colons(match: re.Match[str]) -> Sighting | None:
    parts = {name: (float(text), unit) for name, text, unit in _COLON_PAIR.findall(match[3])}
    values = {name: value for name, (value, unit) in parts.items() if not unit}
    if not any("loss" in name for name in values):
        return None
    spent = parts.get("step_avg", (0.0, ""))[0]
    shown = _with_time(int(match[1]), int(match[2]), values, spent)
    return shown


def _bars(match: re.Match[str]) -> Sighting | None:
    values, spent = {}, 0.0
    for part in match[3].split("|"):
        if unit := _BAR_UNIT.match(part):
            if unit[2] == "ms":
                spent = float(unit[1])
            else:
                values["tokens_per_sec"] = float(unit[1])
        elif pair := _BAR_PART.match(part):
            if pair[3]:
                spent = float(pair[2])
            else:
                values[pair[1].strip()] = float(pair[2].replace(",", ""))
    if not any("loss" in name for name in values):
        return None
    total = int(match[2]) if match[2] else None
    return _with_time(int(match[1]), total, values, spent)


def _with_time(
    step: int, total: int | None, values: dict[str, float], milliseconds: float
) -> Sighting:
    named = canonical_values(values)
    only_validation = bool(named) and all(name.startswith("val_") for name in named)
    return Sighting(
        FAMILY,
        "evaluation" if only_validation else "train",
        step=step,
        total_steps=total,
        values=named,
        rate=1000 / milliseconds if milliseconds > 0 else None,
    )
