"""SQLite keeps every promise of the store port."""

import pytest

from runyard.stores.opening import open_store
from runyard.testing.store_contract import StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        store = open_store(f"sqlite:///{tmp_path}/runyard.db")
        yield store
        store.close()
