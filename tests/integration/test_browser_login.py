"""Logging in to a real server: its link, its restart, its end, and the command that opens it."""

import http.client
import json
import re
import subprocess
import sys

import pytest

from yards import BASE, RunningYard, until


@pytest.fixture
def yard(tmp_path):
    made = RunningYard(tmp_path / "yard", "--on-shutdown", "keep").start()
    yield made
    made.stop()


def _ask(yard, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", yard.port, timeout=30)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def _logged_in(yard, **body):
    status, headers, data = _ask(yard, "POST", f"{BASE}/session", body)
    assert status == 200, data
    return headers["Set-Cookie"].partition(";")[0], json.loads(data)


def _link_in(text):
    return re.search(r"(http://\S+)/login#token=(\S+)\s", text)


def _logs_of(yard):
    return "".join(file.read_text(errors="replace") for file in yard.data.glob("logs/*"))


def _run(yard, *words, **env):
    return subprocess.run(
        [sys.executable, "-m", "runyard", *words],
        env=yard.env | {"RUNYARD_DATA_DIR": str(yard.data)} | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_link_of_the_start_logs_in_once_and_is_in_no_log(yard):
    """R54: start prints a one-time login link."""
    found = until(lambda: _link_in(yard.said()), words=yard.said)
    assert found[1] == yard.url
    cookie, who = _logged_in(yard, token=found[2])
    assert (who["name"], who["role"]) == ("local", "admin")
    assert _ask(yard, "GET", f"{BASE}/jobs", Cookie=cookie)[0] == 200
    assert _ask(yard, "POST", f"{BASE}/session", {"token": found[2]})[0] == 401
    logs = until(lambda: "logged in" in (text := _logs_of(yard)) and text)
    assert found[2] not in logs
    assert cookie.partition("=")[2] not in logs


def test_a_restart_keeps_people_logged_in_and_forgets_links(yard):
    cookie, who = _logged_in(yard, key=yard.key)
    link = _link_in(_run(yard, "open", "--print").stdout)
    yard.kill9()
    yard.start()
    headers = {"Cookie": cookie, "X-CSRF-Token": who["csrf"]}
    assert _ask(yard, "GET", f"{BASE}/session", **headers)[0] == 200
    assert _ask(yard, "POST", f"{BASE}/session/link", **headers)[0] == 201
    assert _ask(yard, "POST", f"{BASE}/session", {"token": link[2]})[0] == 401


def test_the_open_command(yard):
    printed = _run(yard, "open", "--print")
    assert printed.returncode == 0, printed.stderr
    cookie, who = _logged_in(yard, token=_link_in(printed.stdout)[2])
    assert who["role"] == "admin"
    told = json.loads(_run(yard, "open", "--json").stdout)
    assert told["url"].startswith(f"{yard.url}/login#token=")
    made = json.loads(_run(yard, "keys", "create", "vera", "--role", "viewer", "--json").stdout)
    own = _run(yard, "open", RUNYARD_API_KEY=made["secret"], RUNYARD_URL=yard.url)
    assert _logged_in(yard, token=_link_in(own.stdout)[2])[1]["name"] == "vera"
    assert _run(yard, "keys", "revoke", "vera").returncode == 0
    assert _ask(yard, "GET", f"{BASE}/jobs", Cookie=cookie)[0] == 200


def test_the_link_of_the_start_can_be_turned_off(tmp_path):
    yard = RunningYard(tmp_path / "quiet", env={"RUNYARD_LOGIN_LINK": "off"}).start()
    try:
        until(lambda: "listens on" in yard.said(), words=yard.said)
        assert yard.terminate() == 0
        assert "token" not in yard.said()
    finally:
        yard.stop()


def test_links_lead_below_the_path_of_a_proxy(tmp_path):
    yard = RunningYard(tmp_path / "below", env={"RUNYARD_ROOT_PATH": "/yard"}).start()
    try:
        found = until(lambda: _link_in(yard.said()), words=yard.said)
        assert found[1] == f"{yard.url}/yard"
        for url in (yard.url, f"{yard.url}/yard"):
            link = _link_in(_run(yard, "open", RUNYARD_URL=url).stdout)
            assert link[1] == f"{yard.url}/yard"
    finally:
        yard.stop()


def test_the_description_of_the_api_is_the_same_every_time(tmp_path, yard):
    first = _run(yard, "openapi")
    assert first.returncode == 0, first.stderr
    second = _run(yard, "openapi", "--output", str(tmp_path / "api.json"), PYTHONHASHSEED="7")
    assert second.returncode == 0, second.stderr
    assert (tmp_path / "api.json").read_text() == first.stdout
    assert json.loads(first.stdout) == yard.call("GET", "/openapi.json").body
