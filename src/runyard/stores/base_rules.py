"""The part of the store port that keeps people's alert rules."""

from __future__ import annotations

from typing import Protocol

from runyard.domain.monitoring.rules.rule import NewRule, Rule


class RuleReader(Protocol):
    def rules(self) -> list[Rule]:
        """By name."""
        ...

    def rule(self, ref: int | str) -> Rule | None:
        """By its id or its name."""
        ...


class RuleTransaction(RuleReader, Protocol):
    def insert_rule(self, rule: NewRule, by: str, at: float) -> Rule:
        """Its name must be free: look in the same transaction."""
        ...

    def update_rule(self, rule_id: int, rule: NewRule) -> bool:
        """All that a person wrote; it is not broken any more. False when there is none."""
        ...

    def set_rule_broken(self, rule_id: int, why: str | None) -> bool: ...
    def delete_rule(self, rule_id: int) -> bool: ...
