"""The SDK's own WebSocket client, against a server of the websockets package."""

import contextlib
import json
import socket
import threading

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.server import serve

from runyard import Client, RunyardError, ServerUnreachable, Unauthenticated
from runyard.sdk.connection import Connection
from runyard.sdk.live import LiveClosed, LiveSocket
from yards import free_port, until


class Other:
    """A server that does with each connection what the test says."""

    def __init__(self, talk, check=None):
        self.asked = []
        self._talk = talk
        self._server = serve(self._handle, "127.0.0.1", 0, process_request=check)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        port = self._server.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def _handle(self, socket):
        self.asked.append(socket.request.headers.get("Authorization"))
        self._talk(socket)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join(60)

    def opened(self):
        return LiveSocket(Connection(self.url, "secret"), "/ws")


def test_messages_of_every_length_go_both_ways():
    def echo(socket):
        for message in socket:
            socket.send(message)

    with Other(echo) as other:
        live = other.opened()
        for length in (0, 1, 125, 126, 127, 65535, 65536, 300_000):
            live.send("x" * length)
            assert live.receive(60) == "x" * length
        live.send({"text": "训练 \u0000 €"})
        assert live.receive(60) == {"text": "训练 \u0000 €"}
        assert other.asked == ["Bearer secret"]
        live.close()
        with pytest.raises((LiveClosed, OSError)):
            live.receive(5)


def test_messages_in_parts_with_pings_between():
    def talk(socket):
        socket.send(['{"a"', ": [1,", " 2]}"])
        waiting = socket.ping(b"are you there")
        socket.send('"after"')
        assert waiting.wait(60)
        socket.send('"the pong came"')

    with Other(talk) as other:
        live = other.opened()
        assert [live.receive(60) for _ in range(3)] == [{"a": [1, 2]}, "after", "the pong came"]
        with pytest.raises(LiveClosed) as closed:
            live.receive(60)
        assert closed.value.code == 1000
        live.close()


def test_half_a_frame_is_kept_when_the_time_is_over():
    go_on = threading.Event()

    def talk(link):
        data = Frame(Opcode.TEXT, b'"in two pieces"').serialize(mask=False)
        link.socket.sendall(data[:7])
        assert go_on.wait(60)
        link.socket.sendall(data[7:])
        with contextlib.suppress(ConnectionClosed):
            link.recv()

    with Other(talk) as other:
        live = other.opened()
        assert live.receive(0.2) is None
        go_on.set()
        assert live.receive(60) == "in two pieces"
        live.close()


@pytest.fixture
def unused_port():
    return free_port()


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1\x011",  # a reserved bit
        b"\x81\x81\x00\x00\x00\x001",  # masked
        b"\x80\x011",  # goes on with nothing
        b"\x83\x00",  # a kind that does not exist
        b"\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_what_no_server_may_send_closes_the_socket(data):
    def talk(link):
        link.socket.sendall(data)
        with contextlib.suppress(ConnectionClosed):
            link.recv()

    with Other(talk) as other:
        live = other.opened()
        with pytest.raises(LiveClosed):
            live.receive(60)
        live.close()


def test_a_refusal_is_the_problem_that_the_server_told():
    def check(socket, _request):
        answer = socket.respond(401, json.dumps({"code": "unauthenticated", "message": "no"}))
        return answer

    with Other(lambda _socket: None, check) as other, pytest.raises(Unauthenticated):
        other.opened()


def test_nobody_there(unused_port):
    with pytest.raises(ServerUnreachable):
        LiveSocket(Connection(f"http://127.0.0.1:{unused_port}", "k"), "/ws")


def test_whoever_answers_something_else_is_no_server(unused_port):
    def answer():
        link, _ = listening.accept()
        link.recv(4096)
        link.sendall(b"SSH-2.0-something\r\n\r\n")
        link.close()

    with socket.create_server(("127.0.0.1", unused_port)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RunyardError):
            LiveSocket(Connection(f"http://127.0.0.1:{unused_port}", "k"), "/ws")
        thread.join(60)


def test_watching_goes_on_where_it_was():
    """After a lost connection: the last id, and where each log and series had come to."""
    told = []

    def talk(socket):
        told.append(json.loads(socket.recv()))
        number = len(told)
        socket.send(json.dumps({"id": number, "topic": "jobs", "events": [number]}))
        following = f"log:job-1:1:{number * 10}"
        socket.send(json.dumps({"id": number, "topic": "log:job-1", "next": following}))

    with Other(talk) as other, Client(other.url, "k").watch("jobs", "log:job-1:0") as watch:
        seen = []
        for message in watch:
            seen.append(message)
            if len(seen) == 6:
                break
        assert [one["events"] for one in seen if "events" in one] == [[1], [2], [3]]
        assert told[0] == {"subscribe": ["jobs", "log:job-1:0"]}
        assert told[1] == {"subscribe": ["jobs", "log:job-1:1:10"], "last_id": 1}
        assert told[2] == {"subscribe": ["jobs", "log:job-1:1:20"], "last_id": 2}
        assert watch.last_id == 3


def test_watching_gives_up_when_the_server_stays_away(unused_port):
    watch = Client(f"http://127.0.0.1:{unused_port}", "k").watch("jobs", patience_s=0.3)
    with pytest.raises(ServerUnreachable):
        list(watch)


def test_closing_ends_a_watch_from_another_thread():
    def talk(link):
        with contextlib.suppress(ConnectionClosed):
            list(link)

    with Other(talk) as other:
        watch = Client(other.url, "k").watch("jobs")
        ended = threading.Event()

        def follow():
            list(watch)
            ended.set()

        thread = threading.Thread(target=follow)
        thread.start()
        until(lambda: watch.is_live)
        watch.close()
        assert ended.wait(60)
        thread.join(60)
