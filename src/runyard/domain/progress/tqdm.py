"""Bars of tqdm: ` 45%|####      | 45/100 [00:10<00:12,  4.5it/s, loss=0.3]`, with or without words
before them. Bars of downloads and of data preparation are told apart from training."""

from __future__ import annotations

import re

from runyard.domain.progress import phases
from runyard.domain.progress.names import canonical_values
from runyard.domain.progress.point import Sighting
from runyard.domain.progress.written import NUMBER, count, duration, number

FAMILY = "tqdm"

BAR = re.compile(
    r"^(?P<desc>[^|\r\n]{0,200}?):?\s{0,8}\d{1,3}%\|[^|]{0,400}\|\s{0,8}"
    r"(?P<n>[\d.]{1,20}[kMGT]?)/(?P<total>[\d.]{1,20}[kMGT]?)"
    r"\s\[(?P<elapsed>[\d:]{4,12})<(?P<left>[\d:?]{1,12}|\d{1,4} days?, [\d:]{4,9})"
    r"(?:,\s{0,8}(?P<speed>[\d.]{1,20}|\?)\s?(?P<unit>[A-Za-z/_ ]{1,40}))?"
    r"(?P<rest>,[^\]]{0,2000})?\]"
)
_EPOCH = re.compile(
    r"\bep(?:och)?\.?\s{0,3}[:#=]?\s{0,3}[\[(]?\s{0,3}(\d{1,9})(?:\s{0,3}(?:/|of)\s{0,3}(\d{1,9}))?",
    re.IGNORECASE,
)
_EPOCHS_ONLY = re.compile(r"\bepochs?\b", re.IGNORECASE)
_PREPARATION = re.compile(
    r"\b(?:download|fetch|map\b|filter|token|preprocess|pre-process|load|generat|sav|cast|extract"
    r"|resolv|upload|cach|read|creat|build|pack|group|convert|add|truncat|collect|comput|writ|unpack"
    r"|index|pushing|flatten|shard|quantiz|merg|copy|hash|verif|prepar|concat|sampl|encod|batches\b)",
    re.IGNORECASE,
)
_SAVING = re.compile(r"\b(?:sav|writ|upload|pushing)", re.IGNORECASE)
_EVALUATION = re.compile(r"\b(?:val\b|valid|eval|test|sanity|predict|infer)", re.IGNORECASE)
_TRAINING = re.compile(r"\b(?:train|epoch|step|iter|fit|optimi)", re.IGNORECASE)
_OTHER_UNITS = re.compile(
    r"^(?:[kMGT]?i?B|bytes?|[kMGT]?b|examples?|ex|files?|docs?|lines?|rows?|records?|shards?)$"
)
_POSTFIX = re.compile(rf"([A-Za-z][\w./@-]{{0,63}})\s?[=:]\s?({NUMBER})(?![\w.])")


def read(line: str, raw: str) -> Sighting | None:
    """`raw` still has the cursor moves, by which a bar below another is known."""
    if "%|" not in line or "[" not in line:
        return None
    match = BAR.match(line)
    if match is None:
        return None
    desc, rest = match["desc"].strip(), match["rest"] or ""
    done, total = count(match["n"]), count(match["total"])
    kind = _kind(desc, match["unit"])
    if kind == "other" or done is None or not total or done > total:
        meanwhile = phases.SAVING if _SAVING.search(desc) else phases.LOADING
        return Sighting(FAMILY, "other", phase=meanwhile if kind == "other" else None)
    values = {name: float(value.replace(",", "")) for name, value in _POSTFIX.findall(rest)}
    epoch = _EPOCH.search(desc)
    return Sighting(
        FAMILY,
        kind,
        batch=done,
        batches=total,
        epoch=float(epoch[1]) if epoch else None,
        total_epochs=float(epoch[2]) if epoch and epoch[2] else None,
        values=canonical_values(values),
        rate=_rate(match["speed"], match["unit"]),
        eta_s=duration(match["left"]),
        key=re.sub(r"\d+", "#", desc.lower()),
        inner="\x1b[A" in raw,
        counts_epochs=epoch is None and bool(_EPOCHS_ONLY.search(desc)),
    )


def is_labelled_training(key: str) -> bool:
    return bool(_TRAINING.search(key))


def _kind(desc: str, unit: str | None) -> str:
    name = (unit or "").strip().partition("/")
    plain = name[2] if name[0].strip() == "s" else name[0]
    if plain and _OTHER_UNITS.match(plain.strip()):
        return "other"
    if _EVALUATION.search(desc) and not re.search(r"\btrain", desc, re.IGNORECASE):
        return "evaluation"
    if _TRAINING.search(desc):
        return "train"
    return "other" if _PREPARATION.search(desc) else "train"


def _rate(speed: str | None, unit: str | None) -> float | None:
    value = number(speed) if speed and speed != "?" else None
    if not value or unit is None:
        return None
    return 1 / value if unit.strip().startswith("s/") else value
