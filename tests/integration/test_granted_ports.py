"""Ports of the pool that can be used: real listeners, real jobs."""

from __future__ import annotations

import contextlib
import socket
import sys

from yards import POOL

# Listens as most servers do, says where, and ends its first attempt as its argument says.
LISTEN = """
import os, socket, sys
port = int(os.environ["RUNYARD_PORT_0"])
with socket.socket(socket.AF_INET) as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen()
    print("listens at", port, flush=True)
sys.exit(int(sys.argv[1]) if os.environ["RUNYARD_ATTEMPT"] == "1" else 0)
"""


def bind_in_the_pool(foreign):
    """To its first port at which nothing lingers of the connections of an earlier test."""
    for port in POOL:
        with contextlib.suppress(OSError):
            foreign.bind(("127.0.0.1", port))
            return port
    raise AssertionError("every port of the pool is in use")


def pool_from(port):
    return "--port-range", f"{port}-{POOL[-1]}"


@contextlib.contextmanager
def listener():
    """The port that somebody listens on."""
    with socket.socket() as foreign:
        port = bind_in_the_pool(foreign)
        foreign.listen()
        yield port


def test_a_port_that_another_program_listens_on_is_not_given(make_yard):
    """R55: the first port of the pool is somebody else's."""
    with listener() as port:
        yard = make_yard(*pool_from(port)).start()
        ref = yard.submit([sys.executable, "-c", LISTEN, "0"], ports=1)
        yard.wait(ref, "completed")
    [attempt] = yard.attempts(ref)
    assert port not in attempt["ports"]
    assert yard.logs(ref) == [f"listens at {attempt['ports'][0]}"]


@contextlib.contextmanager
def connection():
    """The port it comes from, as the kernel makes them: from a range that the pool lies in."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        port = bind_in_the_pool(client)
        client.connect(server.getsockname())
        yield port


def test_a_port_that_a_connection_has_is_found_at_the_start(make_yard):
    """R55: nobody listens there and yet nobody can: nothing of the job is started with it, which
    is not charged to the job."""
    with connection() as port:
        yard = make_yard(*pool_from(port)).start()
        ref = yard.submit([sys.executable, "-c", LISTEN, "0"], ports=1, max_retries=0)
        yard.wait(ref, "completed")
    first, second = yard.attempts(ref)
    assert (first["end"], first["cause"]) == ("never_started", "port_taken")
    assert first["ports"] == [port]
    assert first["diagnosis"]["explanation"]["params"]["port"] == port
    assert yard.logs(ref, attempt=1) == []
    assert yard.logs(ref, attempt=2) == [f"listens at {second['ports'][0]}"]
    assert yard.job(ref)["charged"] == 0


def test_a_retry_does_not_get_the_port_of_its_predecessor(make_yard):
    """R55: neither the next attempt nor the next job gets what was just given back."""
    yard = make_yard().start()
    ref = yard.submit([sys.executable, "-c", LISTEN, "3"], ports=1, max_retries=1)
    yard.wait(ref, "completed")
    after = yard.submit([sys.executable, "-c", LISTEN, "0"], ports=1)
    yard.wait(after, "completed")
    given = [port for one in (ref, after) for row in yard.attempts(one) for port in row["ports"]]
    assert len(given) == 3
    assert len(set(given)) == 3
