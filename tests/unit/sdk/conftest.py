"""A scripted server and a client of it."""

import pytest

from runyard import Client
from scripted_server import ScriptedServer


@pytest.fixture
def server():
    made = ScriptedServer()
    yield made
    made.close()


@pytest.fixture
def client(server):
    with Client(server.url, "secret") as made:
        yield made
