"""Evaluating a rule: a tree becomes functions once, and each evaluation is linear in its size.

What is not known yet (no sample so far) makes a condition unknown, which never fires; NaN compares
false as everywhere, and `isnan` tells it.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from runyard.domain.monitoring.rules.grammar import Expression, Kind, Node
from runyard.domain.monitoring.series import Sample


class Facts(Protocol):
    """What is known at one moment of whatever the rule is about."""

    @property
    def now(self) -> float: ...
    def latest(self, name: str) -> Sample | None: ...
    def window(self, name: str, since: float) -> Sequence[Sample]:
        """Oldest first, at most 1,000."""
        ...

    def words(self, name: str) -> str | None:
        """Of stage, status and the like."""
        ...


Value = float | bool | str | None
Evaluate = Callable[[Facts], Value]
Holds = Callable[[Facts], bool]


def compile_expression(expression: Expression) -> Holds:
    """Whether the condition holds now, without its `for`."""
    evaluate = _compiled(expression.root)
    return lambda facts: evaluate(facts) is True


def _compiled(node: Node) -> Evaluate:
    parts = [_compiled(part) for part in node.parts]
    if node.op in _LEAVES:
        return _LEAVES[node.op](node)
    if node.op in ("and", "or"):
        return _logic(parts, node.op == "or")
    if node.op == "not":
        return lambda facts: _not(parts[0](facts))
    if node.op in _COMPARE:
        return _comparison(_COMPARE[node.op], parts)
    if node.op == "fold":
        return _fold(
            parts[0],
            [(_FOLD[sign], part) for sign, part in zip(node.text, parts[1:], strict=True)],
        )
    if node.op in _WINDOWS:
        return _over_time(_WINDOWS[node.op], node)
    return _arithmetic(_ARITHMETIC[node.op], parts)


def _number(node: Node) -> Evaluate:
    return lambda _facts: node.value


def _text(node: Node) -> Evaluate:
    return lambda _facts: node.text


def _truth(node: Node) -> Evaluate:
    return lambda _facts: bool(node.value)


def _latest(node: Node) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        sample = facts.latest(node.text)
        return None if sample is None else sample.value

    return evaluate


def _since(node: Node) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        sample = facts.latest(node.text)
        return None if sample is None else max(0.0, facts.now - sample.at)

    return evaluate


def _known(node: Node) -> Evaluate:
    return lambda facts: facts.latest(node.text) is not None


def _words(node: Node) -> Evaluate:
    return lambda facts: facts.words(node.text)


_LEAVES: Mapping[str, Callable[[Node], Evaluate]] = {
    "number": _number,
    "text": _text,
    "truth": _truth,
    "name": _latest,
    "words": _words,
    "since": _since,
    "known": _known,
}


def _logic(parts: Sequence[Evaluate], deciding: bool) -> Evaluate:
    """`or` is decided by a true part, `and` by a false one, whatever else is unknown."""

    def evaluate(facts: Facts) -> Value:
        known = True
        for part in parts:
            value = part(facts)
            if value is deciding:
                return deciding
            known = known and value is not None
        return (not deciding) if known else None

    return evaluate


def _not(value: Value) -> Value:
    return None if value is None else not value


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _comparison(compare: Callable[[Any, Any], bool], parts: Sequence[Evaluate]) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        left, right = parts[0](facts), parts[1](facts)
        return None if left is None or right is None else compare(left, right)

    return evaluate


def _divided(left: float, right: float) -> float:
    return left / right if right else math.nan


def _remainder(left: float, right: float) -> float:
    return math.fmod(left, right) if right and math.isfinite(left) else math.nan


_FOLD: Mapping[str, Callable[[Any, Any], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": _remainder,
}
_ARITHMETIC: Mapping[str, Callable[..., float | bool]] = {
    "negative": operator.neg,
    "abs": abs,
    "min": min,
    "max": max,
    "isnan": math.isnan,
    "isinf": math.isinf,
}


def _arithmetic(compute: Callable[..., float | bool], parts: Sequence[Evaluate]) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        values = [part(facts) for part in parts]
        return None if None in values else compute(*values)

    return evaluate


def _fold(
    first: Evaluate, rest: Sequence[tuple[Callable[[Any, Any], float], Evaluate]]
) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        value = first(facts)
        for combine, part in rest:
            right = part(facts)
            if value is None or right is None:
                return None
            value = combine(value, right)
        return value

    return evaluate


def _slope(samples: Sequence[Sample]) -> float:
    """Per second, by least squares."""
    middle_at = statistics.fmean(sample.at for sample in samples)
    middle = statistics.fmean(sample.value for sample in samples)
    square = sum((sample.at - middle_at) ** 2 for sample in samples)
    product = sum((sample.at - middle_at) * (sample.value - middle) for sample in samples)
    return _divided(product, square)


def _change(samples: Sequence[Sample]) -> float:
    return samples[-1].value - samples[0].value


def _percent(samples: Sequence[Sample]) -> float:
    return 100.0 * _divided(_change(samples), abs(samples[0].value))


def _of_values(
    compute: Callable[[list[float]], float],
) -> Callable[[Sequence[Sample]], float]:
    return lambda samples: compute([sample.value for sample in samples])


_WINDOWS: Mapping[str, Callable[[Sequence[Sample]], float]] = {
    "avg": _of_values(statistics.fmean),
    "median": _of_values(statistics.median),
    "lowest": _of_values(min),
    "highest": _of_values(max),
    "slope": _slope,
    "delta": _change,
    "pct": _percent,
    "count": len,
}


def _over_time(compute: Callable[[Sequence[Sample]], float], node: Node) -> Evaluate:
    """Of finite values only: one NaN would make every average unknown."""
    assert node.kind is Kind.NUMBER
    name, length, counted = node.text, node.value, node.op == "count"

    def evaluate(facts: Facts) -> Value:
        found = facts.window(name, facts.now - length)
        finite = [sample for sample in found if math.isfinite(sample.value)]
        if not finite and not counted:
            return None
        try:
            return float(compute(finite))
        except OverflowError:
            return math.nan

    return evaluate
