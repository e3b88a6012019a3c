"""Where an engine is looked for, and what is said when none is there."""

import socket

import pytest

from runyard.supervisor import engine_sockets
from runyard.supervisor.engine_http import Engine, EngineGone


def test_what_is_configured_is_the_only_one():
    given = {"DOCKER_HOST": "unix:///mine.sock"}
    assert engine_sockets.candidates("unix:///set.sock", given, 5) == ["/set.sock"]
    assert engine_sockets.candidates("/plain.sock", given, 5) == ["/plain.sock"]
    assert engine_sockets.candidates("", given, 5) == ["/mine.sock"]


def test_the_usual_places():
    found = engine_sockets.candidates("", {}, 5)
    assert found[0] == "/var/run/docker.sock"
    assert "/run/user/5/podman/podman.sock" in found
    rootless = engine_sockets.candidates("", {"XDG_RUNTIME_DIR": "/here"}, 5)
    assert "/here/docker.sock" in rootless


def test_only_sockets_of_this_machine():
    assert engine_sockets.is_local("/var/run/docker.sock")
    assert not engine_sockets.is_local("tcp://10.0.0.1:2375")


def test_the_first_that_listens(tmp_path):
    dead, alive = str(tmp_path / "dead"), str(tmp_path / "alive")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(dead)  # a file that nobody listens at any more
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(alive)
        listening.listen()
        assert engine_sockets.answering([dead, alive]) == alive
    assert engine_sockets.answering([dead, str(tmp_path / "none")]) is None


def test_an_engine_that_is_gone(tmp_path):
    with pytest.raises(EngineGone, match="No such file"):
        Engine(str(tmp_path / "none")).call("GET", "/version")
