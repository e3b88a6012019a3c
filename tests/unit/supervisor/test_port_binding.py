"""Whether ports can be used: by what the kernel of this machine says to real sockets."""

from __future__ import annotations

import socket

import pytest

from runyard.supervisor.port_binding import taken
from yards import POOL, free_port

FREE = POOL[-1]  # none that the kernel gives to connections


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.0.1"),
        (socket.AF_INET, "127.0.0.9"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::"),
    ],
)
def test_a_port_that_somebody_listens_on_is_taken(family, address):
    """R55: at whatever address, also by one that lets others share it."""
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, 0))
        except OSError:
            pytest.skip(f"{address} is not there")
        listener.listen()
        port = listener.getsockname()[1]
        assert taken([FREE, port]) == [port]
    assert taken([FREE]) == []


def test_what_lingers_of_a_closed_connection_is_no_obstacle():
    port = free_port()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = listener.accept()
        accepted.close()  # the side that closes first has the port in TIME_WAIT
        client.close()
    assert taken([port]) == []


def test_an_outgoing_connection_takes_its_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as client:
            port = client.getsockname()[1]
            assert taken([port]) == [port]
