"""The step (and epoch) that the name of a checkpoint tells."""

from __future__ import annotations

import re

_STEP = re.compile(
    r"(?:global[_-]?step|checkpoint|step|iter(?:ation)?|ckpt|it|model|state|weights|batch|snapshot)"
    r"[=_\-.:]{0,2}(\d{1,15})"
)
_SHARD = re.compile(r"-?\d{5}-of-\d{5}")
_EPOCH = re.compile(r"(?<![a-z])(?:epoch|ep|e)[=_\-.:]{0,2}(\d{1,9})")
_ONLY_DIGITS = re.compile(r"\d{1,15}")
_LAST_DIGITS = re.compile(r"[_\-.](\d{1,15})(?:\.[a-z0-9]{1,12}){0,2}$")
_PARTICULAR = re.compile(r"(?:step|iter(?:ation)?|checkpoint)[=_\-.:]{0,2}(\d{1,15})")


def read(path: str) -> tuple[int | None, int | None]:
    """Step and epoch; None where the name does not tell. The last part of the path that tells
    anything counts."""
    for part in reversed(path.lower().split("/")):
        step, epoch = _of_name(part)
        if step is not None or epoch is not None:
            return step, epoch
    return None, None


def _of_name(name: str) -> tuple[int | None, int | None]:
    name = _SHARD.sub("", name)
    epoch = _EPOCH.search(name)
    number = None if epoch is None else int(epoch.group(1))
    if _ONLY_DIGITS.fullmatch(name):
        return int(name), None
    for pattern in (_PARTICULAR, _STEP):
        step = pattern.search(name)
        if step is not None:
            return int(step.group(1)), number
    if number is not None:
        return None, number
    last = _LAST_DIGITS.search(name)
    return (None if last is None else int(last.group(1))), None
