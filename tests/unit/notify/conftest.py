import pytest

from runyard.stores.opening import open_store
from webhook_receiver import WebhookReceiver


@pytest.fixture
def receiver():
    made = WebhookReceiver().up()
    yield made
    made.down()


@pytest.fixture
def store(tmp_path):
    made = open_store(f"sqlite:///{tmp_path / 'runyard.db'}")
    yield made
    made.close()
