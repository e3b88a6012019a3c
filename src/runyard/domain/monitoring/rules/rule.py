"""A person's own alert rule: when it fires, how grave that is, and what is done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.rules.grammar import Expression, parse
from runyard.domain.monitoring.rules.tokens import RuleError, seconds

CODE = "rule"  # of the alerts that rules open; params: rule, expression, values
NODE_PREFIX = "node."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class Action(StrEnum):
    NOTIFY = "notify"  # an alert, which people are told of; every rule does that
    CANCEL = "cancel"
    CHECKPOINT_AND_STOP = "checkpoint-and-stop"  # asked to save and leave; it ends as failed
    RETRY = "retry"  # the same, and then another attempt


@dataclass(frozen=True, slots=True)
class NewRule:
    name: str
    expression: str
    for_s: float
    level: AlertLevel
    actions: tuple[Action, ...]
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    id: int
    name: str
    expression: str
    for_s: float
    level: AlertLevel
    actions: tuple[Action, ...]
    enabled: bool
    broken: str | None  # why it cannot be evaluated
    created_by: str
    created_at: float


def check(
    name: str,
    expression: str,
    length: str | float | None,
    level: AlertLevel,
    actions: tuple[Action, ...],
    enabled: bool = True,
) -> NewRule:
    """A rule that can be kept; RuleError says why not."""
    if not _NAME.fullmatch(name):
        raise RuleError("a name has up to 63 letters, digits, '_', '-' and '.'")
    if name.isdigit():
        raise RuleError("a name is not only digits: those are ids")
    parsed = parse(expression)
    given = None if length is None else seconds(str(length))
    if given is not None and parsed.for_s and parsed.for_s != given:
        raise RuleError("'for' is given twice, and differs")
    ending = [action for action in actions if action is not Action.NOTIFY]
    if len(ending) > 1:
        raise RuleError("a job can end in one way only: " + ", ".join(ending))
    for_s = parsed.for_s if given is None else given
    return NewRule(name, expression, for_s, level, actions or (Action.NOTIFY,), enabled)


def ending_of(actions: tuple[Action, ...]) -> Action | None:
    """What the rule does to a job, if it does more than tell."""
    return next((action for action in actions if action is not Action.NOTIFY), None)


def of_machines(expression: Expression, actions: tuple[Action, ...]) -> bool:
    """Whether it is about machines, also while no job runs."""
    only_nodes = all(name.startswith(NODE_PREFIX) for name in expression.names)
    told = bool(expression.names) and only_nodes and not expression.texts
    return told and ending_of(actions) is None
