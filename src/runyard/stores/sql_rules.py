"""Alert rules of people: few rows, read often."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.rules.rule import Action, NewRule, Rule
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.watch_tables import alert_rules

_rules = alert_rules.c
_WRITTEN = ("name", "expression", "for_s", "level", "actions", "enabled", "broken")
_ALL = Statement(select(alert_rules).order_by(_rules.name))
_BY_ID = Statement(select(alert_rules).where(_rules.id == bindparam("the_id")))
_BY_NAME = Statement(select(alert_rules).where(_rules.name == bindparam("the_name")))
_INSERT = Statement(
    insert(alert_rules).inline(), [c.key for c in _rules if c.key != "id"], gives=_rules.id
)
_UPDATE = Statement(update(alert_rules).where(_rules.id == bindparam("the_id")), _WRITTEN)
_BREAK = Statement(update(alert_rules).where(_rules.id == bindparam("the_id")), ("broken",))
_DELETE = Statement(delete(alert_rules).where(_rules.id == bindparam("the_id")))


class RuleReads(Session):
    def rules(self) -> list[Rule]:
        return [_rule_from(row) for row in self._rows(_ALL)]

    def rule(self, ref: int | str) -> Rule | None:
        by_id = isinstance(ref, int)
        row = self._row(_BY_ID, the_id=ref) if by_id else self._row(_BY_NAME, the_name=ref)
        return None if row is None else _rule_from(row)


class RuleWrites(RuleReads):
    def insert_rule(self, rule: NewRule, by: str, at: float) -> Rule:
        rule_id = self._insert(_INSERT, **_columns(rule), created_by=by, created_at=at)
        found = self.rule(rule_id)
        assert found is not None  # written in this very transaction
        return found

    def update_rule(self, rule_id: int, rule: NewRule) -> bool:
        return self._run(_UPDATE, the_id=rule_id, **_columns(rule)) > 0

    def set_rule_broken(self, rule_id: int, why: str | None) -> bool:
        return self._run(_BREAK, the_id=rule_id, broken=why) > 0

    def delete_rule(self, rule_id: int) -> bool:
        return self._run(_DELETE, the_id=rule_id) > 0


def _columns(rule: NewRule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "expression": rule.expression,
        "for_s": rule.for_s,
        "level": rule.level.value,
        "actions": [action.value for action in rule.actions],
        "enabled": rule.enabled,
        "broken": None,
    }


def _rule_from(row: Any) -> Rule:
    return Rule(
        id=row.id,
        name=row.name,
        expression=row.expression,
        for_s=row.for_s,
        level=AlertLevel(row.level),
        actions=tuple(Action(action) for action in row.actions),
        enabled=row.enabled,
        broken=row.broken,
        created_by=row.created_by,
        created_at=row.created_at,
    )
