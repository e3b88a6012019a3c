"""Bars of Lightning: tqdm's with `v_num`, the newer ones with `Epoch 2/9 ━━━ 40/40`, both counting
epochs from 0, and the line that tells why the training ended."""

from __future__ import annotations

import re
from dataclasses import replace

from runyard.domain.progress import phases, tqdm
from runyard.domain.progress.names import canonical_values
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import NUMBER

FAMILY = "lightning"

_RICH = re.compile(
    r"^(?P<desc>[A-Za-z][\w ]{0,40}?)\s{1,4}(?:(?P<epoch>\d{1,9})/(?P<last>\d{1,9})\s{1,4})?"
    r"[━╸╺ ]{3,300}(?P<n>\d{1,12})/(?P<total>\d{1,12})\s{1,4}"
    r"[\d:]{4,12}\s•\s(?P<left>[\d:-]{4,12})\s{1,4}(?P<speed>[\d.]{1,20})\s?it/s(?P<rest>.{0,4000})$"
)
_VALUE = re.compile(rf"([A-Za-z][\w./@-]{{0,63}}):\s{{1,4}}({NUMBER})(?![\w.])")
_ENDED = re.compile(r"`Trainer\.fit` stopped: `max_(epochs|steps)=(\d{1,12})` reached")
_BANNER = re.compile(r"^(?:GPU available: (?:True|False)|TPU available: |Sanity Checking)")


def read(line: str, raw: str) -> Sighting | None:
    if "Trainer.fit" in line and (ended := _ENDED.search(line)):
        return _total(ended[1], int(ended[2]))
    if _BANNER.match(line):
        return Sighting(FAMILY, "hint", epoch_base=0)
    if "━" in line:
        return _rich(line)
    if "v_num=" in line and (bar := tqdm.read(line, raw)) is not None:
        values = {name: value for name, value in bar.values.items() if name != "v_num"}
        return replace(bar, family=FAMILY, values=values, epoch_base=0)
    return None


def _total(unit: str, number: int) -> Sighting:
    if unit == "epochs":
        total = Sighting(FAMILY, "hint", total_epochs=float(number), epoch_base=0)
    else:
        total = Sighting(FAMILY, "hint", total_steps=number, epoch_base=0)
    return replace(total, phase=phases.FINISHING)


def _rich(line: str) -> Sighting | None:
    match = _RICH.match(line)
    if match is None:
        return None
    values = {name: float(value.replace(",", "")) for name, value in _VALUE.findall(match["rest"])}
    values.pop("v_num", None)
    if match["epoch"] is None:
        kind = "evaluation" if re.match("Valid|Test|Sanity|Predict", match["desc"]) else "other"
        return Sighting(FAMILY, kind, key=match["desc"].lower())
    speed = float(match["speed"])
    return Sighting(
        FAMILY,
        "train",
        batch=float(match["n"]),
        batches=float(match["total"]),
        epoch=float(match["epoch"]),
        epoch_base=0,
        total_epochs=float(match["last"]) + 1,  # it shows the number of the last
        values=canonical_values(values),
        rate=speed or None,
        key="epoch #/#",
    )
