"""News without waiting: lost when nobody listens, kept for a while when the queue is full."""

import json
import os
import socket

import pytest

from runyard.supervisor import news, protocol


@pytest.fixture
def sender(tmp_path):
    here = os.getcwd()
    os.chdir(tmp_path)
    made = news.NewsSender()
    yield made
    made.close()
    os.chdir(here)


def listen():
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(protocol.NEWS_SOCKET)
    sock.setblocking(False)
    return sock


def test_arrives(sender):
    with listen() as server:
        sender.send("started", "job-a.1", pid=4)
        piece = json.loads(server.recv(4096))
    assert (piece["kind"], piece["attempt_id"], piece["pid"]) == ("started", "job-a.1", 4)
    assert piece["v"] == protocol.VERSION


def test_nobody_listens_then_somebody_does(sender):
    sender.send("ended", "job-a.1")
    assert sender.unsent
    with listen() as server:
        sender.flush()
        assert json.loads(server.recv(4096))["kind"] == "ended"
    assert not sender.unsent


def test_given_up_after_a_few_tries(sender):
    sender.send("ended", "job-a.1")
    for _ in range(10):
        sender.flush()
    assert not sender.unsent


def test_full_queue_keeps_order_and_bounds_the_backlog(sender):
    with listen() as server:
        for number in range(200):
            sender.send("ended", f"job-{number}.1")
        first = json.loads(server.recv(4096))["attempt_id"]
        assert first == "job-0.1"
        assert 0 < len(sender.unsent) <= 64
        numbers = []
        while True:
            sender.flush()
            try:
                numbers.append(json.loads(server.recv(4096))["attempt_id"])
            except BlockingIOError:
                break
        assert numbers[-1] == "job-199.1"
