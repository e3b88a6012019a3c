"""What a store promises about people who are logged in with a browser."""

from __future__ import annotations

from runyard.stores.base import Key, Store
from runyard.testing.store_samples import START

_DAY = 86400.0


def _key(store: Store, name: str = "anna") -> Key:
    key = Key(0, name, "user", "ry_abc", START, None, START + 30 * _DAY)
    return store.write(lambda tx: tx.insert_key(key, f"digest-of-{name}"))


def _log_in(store: Store, key: Key, digest: str = "cookie", until: float = START + _DAY) -> bool:
    return store.write(lambda tx: tx.insert_login_session(digest, key.key_id, START, until))


class LoginContract:
    def test_a_login_comes_back_with_its_key(self, store: Store) -> None:
        key = _key(store)
        assert _log_in(store, key)
        with store.read() as reader:
            found = reader.login_session("cookie")
            assert reader.login_session("another") is None
        assert found is not None
        assert (found.key_id, found.name, found.role) == (key.key_id, "anna", "user")
        assert (found.created_at, found.seen_at) == (START, START)
        assert (found.expires_at, found.key_expires_at) == (START + _DAY, START + 30 * _DAY)

    def test_nobody_logs_in_with_a_key_that_is_gone(self, store: Store) -> None:
        key = _key(store)
        store.write(lambda tx: tx.revoke_key(key.key_id))
        assert not _log_in(store, key)

    def test_logins_end_with_their_key(self, store: Store) -> None:
        key, other = _key(store), _key(store, "berta")
        _log_in(store, key)
        _log_in(store, other, "berta's")
        store.write(lambda tx: tx.revoke_key(key.key_id))
        with store.read() as reader:
            assert reader.login_session("cookie") is None
            assert reader.login_session("berta's") is not None

    def test_a_login_can_be_extended_and_ended(self, store: Store) -> None:
        _log_in(store, _key(store))
        with store.read() as reader:
            found = reader.login_session("cookie")
        assert found is not None
        later = START + _DAY / 2
        store.write(lambda tx: tx.extend_login_session(found.session_id, later, later + _DAY))
        with store.read() as reader:
            extended = reader.login_session("cookie")
        assert extended is not None
        assert (extended.seen_at, extended.expires_at) == (later, later + _DAY)
        assert store.write(lambda tx: tx.delete_login_session("cookie"))
        assert not store.write(lambda tx: tx.delete_login_session("cookie"))

    def test_only_expired_logins_are_forgotten(self, store: Store) -> None:
        key = _key(store)
        _log_in(store, key, "old", START + 10)
        _log_in(store, key, "new", START + 20)
        assert store.write(lambda tx: tx.forget_login_sessions(START + 15)) == 1
        with store.read() as reader:
            assert reader.login_session("old") is None
            assert reader.login_session("new") is not None
