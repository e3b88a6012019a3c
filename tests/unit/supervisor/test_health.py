"""Looking at a service: connections, answers, and nothing that waits."""

import socket
import threading
import time

import pytest

from runyard.supervisor import health
from yards import free_port


@pytest.fixture
def listener():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        yield made


def outcome(check, seconds=60.0):
    deadline = time.monotonic() + seconds
    while (found := check.poll(time.monotonic())) is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def answering(listener, words):
    def serve():
        connection, _ = listener.accept()
        with connection:
            asked.append(connection.recv(4096))
            for word in words:
                connection.sendall(word)
                time.sleep(0.01)

    asked: list[bytes] = []
    thread = threading.Thread(target=serve)
    thread.start()
    return thread, asked


def look(listener, path, seconds=60.0):
    port = listener.getsockname()[1]
    return health.Check(port, path, time.monotonic() + seconds)


def test_a_listening_port_is_enough_for_tcp(listener):
    assert outcome(look(listener, "tcp")) is True


def test_nobody_listens():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        check = health.Check(port, "tcp", time.monotonic() + 60)
        assert outcome(check) is False
        assert check.said == "Connection refused"


def test_a_port_that_connects_to_itself_is_nobody():
    """Of a port in the range for outgoing connections the kernel may choose the very same."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        own.connect(own.getsockname())  # so it goes
        assert own.getsockname() == own.getpeername()
        check = health.Check.__new__(health.Check)
        check._socket = own
        with pytest.raises(ConnectionRefusedError):
            check._connected()


@pytest.mark.parametrize(
    ("words", "good"),
    [
        ([b"HTTP/1.1 200 OK\r\n\r\n"], True),
        ([b"HTTP/1.0 204 No Content\r\n\r\n"], True),
        ([b"HTTP/1.1 302 Found\r\n\r\n"], True),
        ([b"HTT", b"P/1.1 2", b"00 OK\r\n\r\n"], True),
        ([b"HTTP/1.1 503 Loading\r\n\r\n"], False),
        ([b"HTTP/1.1 404 Not Found\r\n\r\n"], False),
        ([b"HTTP/1.1 100 Continue\r\n\r\n"], False),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], False),
        ([b"HTTP/1.1 "], False),
        ([], False),
    ],
)
def test_answers(listener, words, good):
    thread, asked = answering(listener, words)
    assert outcome(look(listener, "/health?deep=1")) is good
    thread.join()
    assert asked[0].startswith(b"GET /health?deep=1 HTTP/1.1\r\nHost: 127.0.0.1:")


def test_one_that_takes_the_connection_and_says_nothing(listener):
    check = look(listener, "/health", seconds=0.05)
    assert outcome(check) is False
    assert check.said == "no answer"


def test_a_step_does_not_wait(listener):
    check = look(listener, "/health", seconds=600)
    began = time.monotonic()
    for _ in range(20):
        assert check.poll(time.monotonic()) is None
    assert time.monotonic() - began < 60
    check.close()


def test_free_ports():
    port = free_port()  # the kernel gives it to nobody else when it is free again
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        assert not health.port_is_free(port)
    assert health.port_is_free(port)
