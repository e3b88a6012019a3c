"""What a store promises about alert rules."""

from __future__ import annotations

from dataclasses import replace

from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.rules.rule import Action, NewRule, Rule
from runyard.stores.base import Store
from runyard.testing.store_samples import START

_HIGH = NewRule(
    "high-loss",
    'loss > 10 and stage == "running"',
    300.0,
    AlertLevel.ERROR,
    (Action.NOTIFY, Action.CHECKPOINT_AND_STOP),
)


def _keep(store: Store, rule: NewRule = _HIGH) -> Rule:
    return store.write(lambda tx: tx.insert_rule(rule, "anna", START))


class RuleContract:
    def test_a_rule_comes_back_exactly(self, store: Store) -> None:
        kept = _keep(store)
        assert kept == Rule(
            id=kept.id,
            name="high-loss",
            expression='loss > 10 and stage == "running"',
            for_s=300.0,
            level=AlertLevel.ERROR,
            actions=(Action.NOTIFY, Action.CHECKPOINT_AND_STOP),
            enabled=True,
            broken=None,
            created_by="anna",
            created_at=START,
        )
        with store.read() as reader:
            assert reader.rule(kept.id) == kept
            assert reader.rule("high-loss") == kept
            assert reader.rule("low-loss") is None
            assert reader.rule(kept.id + 1) is None

    def test_rules_are_listed_by_name(self, store: Store) -> None:
        for name in ("b", "c", "a"):
            _keep(store, replace(_HIGH, name=name))
        with store.read() as reader:
            assert [rule.name for rule in reader.rules()] == ["a", "b", "c"]

    def test_a_change_repairs_a_broken_rule(self, store: Store) -> None:
        kept = _keep(store)
        assert store.write(lambda tx: tx.set_rule_broken(kept.id, "no such function"))
        with store.read() as reader:
            assert reader.rule(kept.id) == replace(kept, broken="no such function")
        changed = replace(_HIGH, name="higher-loss", expression="loss > 20", enabled=False)
        assert store.write(lambda tx: tx.update_rule(kept.id, changed))
        with store.read() as reader:
            found = reader.rule("higher-loss")
        assert found == replace(
            kept, name="higher-loss", expression="loss > 20", enabled=False, broken=None
        )

    def test_a_deleted_rule_is_gone(self, store: Store) -> None:
        kept = _keep(store)
        assert store.write(lambda tx: tx.delete_rule(kept.id))
        assert not store.write(lambda tx: tx.delete_rule(kept.id))
        assert not store.write(lambda tx: tx.update_rule(kept.id, _HIGH))
        assert not store.write(lambda tx: tx.set_rule_broken(kept.id, "x"))
        with store.read() as reader:
            assert reader.rules() == []
        assert _keep(store).id != kept.id, "its number is not given to another"
