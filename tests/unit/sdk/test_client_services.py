"""Services that a client runs here: ports, health, logs, restarts, and what ends them."""

import os
import socket
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from runyard import BadRequest, LocalService, LocalServiceFailed
from runyard.sdk import service_files, service_group
from runyard.sdk.follower import View
from runyard.sdk.service_group import LocalServices
from runyard.sdk.services import how_ended
from yards import Truth, free_port, until

# Answers 503 until `ready` exists; every start is told to `starts`.
SERVING = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists("ready") else 503)
        self.end_headers()
    def log_message(self, *_): pass
with open("starts", "a") as file: file.write(f"{os.getpid()}\\n")
print("serving", os.environ["RUNYARD_PORT"], *sys.argv[1:], flush=True)
http.server.HTTPServer(("127.0.0.1", int(os.environ["RUNYARD_PORT"])), Handler).serve_forever()
"""
SERVER = [sys.executable, "-c", SERVING]


class Told(View):
    """Remembers what it was told."""

    def __init__(self):
        self.lines = []

    def __getattribute__(self, name):
        if name.startswith("service_"):
            return lambda *what: self.lines.append((name, *what))
        return super().__getattribute__(name)

    def names(self):
        return [line[0] for line in self.lines]


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def view():
    return Told()


@pytest.fixture
def group(view):
    """Starts services, and stops them with the test."""
    made = []

    def start(*services, on_lost=lambda _: None):
        services = LocalServices(services, view, on_lost)
        made.append(services)
        services.start()
        return services

    yield start
    for services in made:
        services.force()
        services.stop()


def pids(tmp_path):
    path = tmp_path / "starts"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_a_service_is_ready_when_it_listens(group, view):
    services = group(LocalService("reward", [*SERVER, "{port}"]))
    [told] = services.addresses()
    port = int(told["url"].rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), 5).close()
    assert told["name"] == "reward"
    (starting, _, log), ready = view.lines
    assert starting == "service_starting"
    assert ready == ("service_ready", "reward", told["url"])
    with open(log) as file:
        assert file.read() == f"serving {port} {port}\n"
    assert os.stat(log).st_mode & 0o077 == 0
    services.stop()
    assert view.names()[-1] == "service_stopped"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_path_must_answer_before_it_is_ready(group, view, tmp_path):
    done = threading.Event()

    def start():
        group(LocalService("reward", SERVER, health="/health"))
        done.set()

    threading.Thread(target=start, daemon=True).start()
    until(lambda: pids(tmp_path), words="not started")
    assert not done.wait(0.5)
    (tmp_path / "ready").touch()
    assert done.wait(60)
    assert view.names() == ["service_starting", "service_ready"]


def test_one_that_is_never_ready_is_told_and_stopped(group, tmp_path):
    with pytest.raises(LocalServiceFailed, match=r"not ready within 0\.5 s; its log is") as caught:
        group(LocalService("reward", SERVER, health="/health", ready_timeout_s=0.5))
    assert caught.value.error_code == "local_service_not_ready"
    assert tmp_path / "state" in type(tmp_path)(caught.value.params["log"]).parents


def test_one_that_ends_before_it_is_ready(group):
    with pytest.raises(LocalServiceFailed, match="ended with exit code 3") as caught:
        group(LocalService("reward", "echo no model; exit 3"))
    with open(caught.value.params["log"]) as file:
        assert file.read() == "no model\n"


def test_one_that_a_signal_ends_is_told_with_its_name(group):
    """R50: neither as exit code -9 nor as 137."""
    with pytest.raises(LocalServiceFailed, match="was ended by SIGKILL; its log is") as caught:
        group(LocalService("reward", "kill -9 $$"))
    assert caught.value.error_code == "local_service_killed"
    assert caught.value.params["signal"] == "SIGKILL"
    assert how_ended(-9) == "was ended by SIGKILL"
    assert how_ended(255) == "ended with exit code 255"


def test_a_program_that_does_not_exist(group):
    with pytest.raises(LocalServiceFailed, match="ended with exit code 127"):
        group(LocalService("reward", ["/no/such/program"]))


def test_later_ones_are_told_where_the_earlier_are(group, view, tmp_path):
    second = f'echo $RUNYARD_SERVICE_REWARD_MODEL_URL > seen; exec {sys.executable} -c "$SERVING"'
    services = group(
        LocalService("reward-model", SERVER),
        LocalService("judge", second, env={"SERVING": SERVING}, cwd=str(tmp_path)),
    )
    first = services.addresses()[0]["url"]
    assert (tmp_path / "seen").read_text() == f"{first}\n"
    services.stop()
    stopped = [line[1] for line in view.lines if line[0] == "service_stopped"]
    assert stopped == ["judge", "reward-model"]


def test_a_port_that_is_asked_for(group):
    port = free_port()
    services = group(LocalService("reward", SERVER, port=port))
    assert services.addresses()[0]["url"].endswith(f":{port}")
    with pytest.raises(LocalServiceFailed, match="is free"):
        group(LocalService("other", SERVER, port=port))


def test_a_port_out_of_a_range(group):
    with socket.socket() as taken:
        first = free_port()
        taken.bind(("127.0.0.1", first))
        taken.listen()
        services = group(LocalService("reward", SERVER, port=(first, first + 50)))
    port = int(services.addresses()[0]["url"].rpartition(":")[2])
    assert first < port <= first + 50


def test_one_that_fails_is_started_again_at_the_same_address(group, view, tmp_path):
    lost = []
    service = LocalService("reward", SERVER, restart="on-failure")
    services = group(service, on_lost=lost.append)
    before = services.addresses()
    [pid] = pids(tmp_path)
    os.kill(pid, 9)
    until(lambda: view.names().count("service_ready") == 2, words=lambda: view.lines)
    assert ("service_restarting", "reward", 137) in view.lines
    assert services.addresses() == before
    assert len(pids(tmp_path)) == 2
    assert lost == []


@pytest.mark.parametrize(
    ("restart", "command", "code"),
    [("never", "exit 4", 4), ("on-failure", "exit 0", 0)],
)
def test_one_that_ends_is_told(group, restart, command, code, tmp_path):
    lost = []
    listening = f"{sys.executable} -c 'import socket, os; s = socket.socket(); "
    listening += 's.bind(("127.0.0.1", int(os.environ["RUNYARD_PORT"]))); s.listen(); '
    listening += 'open(os.open("end", os.O_RDONLY)).read()\''  # until somebody opens it to write
    os.mkfifo(tmp_path / "end")
    service = LocalService("reward", f"{listening}; {command}", restart=restart)
    group(service, on_lost=lost.append)
    (tmp_path / "end").write_text("")
    [failure] = until(lambda: lost, words="not told")
    assert failure.params["exit_code"] == code


def test_one_that_cannot_come_back_is_given_up(group, view, tmp_path, monkeypatch):
    lost = []
    once = f'test -e tried && exit 5; touch tried; exec {sys.executable} -c "$SERVING"'
    service = LocalService("reward", once, restart="on-failure", env={"SERVING": SERVING})

    def monotonic():
        tried = view.names().count("service_restarting")
        return time.monotonic() + (service.ready_timeout_s if tried >= 3 else 0)

    monkeypatch.setattr(service_group, "time", SimpleNamespace(monotonic=monotonic))
    group(service, on_lost=lost.append)
    os.kill(pids(tmp_path)[0], 9)
    until(lambda: lost, words=lambda: view.lines)
    assert view.names().count("service_restarting") == 3


def test_a_stop_while_it_starts(view):
    failures = []
    services = LocalServices([LocalService("reward", "sleep 300")], view, lambda _: None)

    def start():
        try:
            services.start()
        except LocalServiceFailed as failure:
            failures.append(failure.error_code)

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    until(lambda: "service_starting" in view.names(), words="not starting")
    services.stop()
    thread.join(60)
    told = ("stopped", "ended", "killed")
    assert failures[0] in [f"local_service_{how}" for how in told]
    with pytest.raises(LocalServiceFailed, match="stopped"):
        services.start()


def test_a_stop_ends_a_stubborn_tree_after_its_grace(group, tmp_path):
    truth = Truth(tmp_path / "truth")
    keep = os.open(truth.path, os.O_WRONLY)
    stubborn = f"exec 9>{truth.path}; trap '' TERM; {sys.executable} -c \"$SERVING\"; sleep 300"
    services = group(LocalService("reward", stubborn, grace_s=0.5, env={"SERVING": SERVING}))
    os.close(keep)
    assert truth.held()
    services.stop()
    assert not truth.held()
    truth.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a b"},
        {"name": ""},
        {"command": ""},
        {"command": []},
        {"command": [1]},
        {"health": "health"},
        {"restart": "always"},
        {"port": 70000},
        {"port": (9, 8)},
    ],
)
def test_what_no_service_can_be(fields):
    with pytest.raises(BadRequest) as caught:
        LocalService(**{"name": "a", "command": "b", **fields})
    assert caught.value.error_code == "local_service_invalid"


def test_two_of_one_name(view):
    wanted = [LocalService("a-b", "x"), LocalService("A_b", "x")]
    with pytest.raises(BadRequest):
        LocalServices(wanted, view, lambda _: None)


def test_only_the_port_is_replaced():
    assert service_files.argv("a {port} ${HOME} {x}", 7) == ["/bin/sh", "-c", "a 7 ${HOME} {x}"]
    assert service_files.argv(["a", "--at={port}"], 7) == ["a", "--at=7"]


def test_logs_of_a_month_ago_are_removed():
    first = service_files.new_log("a")
    other = os.path.join(os.path.dirname(first), "old.log")
    for path, age_d in ((first, 1), (other, 40)):
        with open(path, "w"):
            os.utime(path, (time.time() - age_d * 86400,) * 2)
    service_files.new_log("b")
    assert os.path.exists(first)
    assert not os.path.exists(other)


def test_a_home_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    log = service_files.new_log("a")
    assert os.path.isdir(os.path.dirname(log))
    os.rmdir(os.path.dirname(log))
