"""PostgreSQL keeps every promise of the store port."""

import pytest

from runyard.stores.opening import open_store
from runyard.testing.store_contract import StoreContract


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def store(self, postgres_url):
        store = open_store(postgres_url)
        yield store
        store.close()
