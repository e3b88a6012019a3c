"""What a hostile job, page or neighbour could try against a browser that is logged in."""

import asyncio
import collections
import contextlib
import json
import os
import socket as sockets

import pytest
from served import BASE, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from runyard.api import live_socket
from runyard.api.file_answer import FileAnswer


def cookie_of(answer):
    return answer.headers["Set-Cookie"].partition(";")[0]


def logged_in(served, **headers):
    answer = served.api("POST", "/session", {"key": served.user}, key="", headers=headers)
    assert answer.status == 200
    return cookie_of(answer), answer.body["csrf"]


def output_of(served):
    job = served.submit(hold=True)
    folder = served.settings.data_dir / "outputs" / job
    folder.mkdir(parents=True)
    return job, folder


def test_a_cookie_that_was_planted_is_not_taken_over(served):
    """A session begins with a secret of the server's, whatever the browser came with."""
    name = cookie_of(served.api("POST", "/session", {"key": served.user}, key="")).partition("=")[
        0
    ]
    planted = f"{name}=rys_{'A' * 43}"
    made, csrf = logged_in(served, Cookie=planted)
    assert made != planted
    headers = {"Cookie": planted, "X-CSRF-Token": csrf}
    assert served.api("GET", "/session", key="", headers=headers).status == 401
    own, _ = logged_in(served, Cookie=made)
    assert own != made


@pytest.mark.parametrize("path", ["/jobs", "/session", "/alerts", "/keys", "/about", "/jobs/none"])
def test_nothing_that_a_key_opened_is_kept(served, path):
    answer = served.api("GET", path)
    assert answer.headers.get_all("Cache-Control") == ["no-store"]
    assert served.api("GET", path, key="").headers.get_all("Cache-Control") == ["no-store"]


@pytest.mark.parametrize("name", ["report.html", "logo.svg", "page.xhtml", "a.js", "feed.xml"])
def test_a_file_that_a_job_wrote_is_never_shown_as_a_page(served, name):
    job, folder = output_of(served)
    (folder / name).write_text("<script>alert(document.cookie)</script>")
    answer = served.api("GET", f"/jobs/{job}/files/{name}")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert answer.headers.get_all("X-Content-Type-Options") == ["nosniff"]
    assert answer.headers.get_all("Cache-Control") == ["no-store"]
    assert "sandbox" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "name", ['a"; filename=evil.html', "a\r\nSet-Cookie: x=1", "a\nb", "é%0d"]
)
def test_a_name_of_a_file_writes_no_header(served, name):
    job, folder = output_of(served)
    (folder / name).write_text("x")
    [listed] = served.api("GET", f"/jobs/{job}/files").body["files"]
    assert listed["path"] == name
    path = "".join(f"%{byte:02X}" for byte in name.encode())
    answer = served.api("GET", f"/jobs/{job}/files/{path}")
    assert answer.headers.get("Set-Cookie") is None
    if "\n" in name:  # no route leads to such a name
        assert answer.status == 404
        return
    assert (answer.status, answer.data) == (200, b"x")
    told = answer.headers["Content-Disposition"]
    assert '"' not in told
    assert told.count(";") == 1


def test_a_link_that_comes_later_leads_nowhere_either(served):
    """The listing said it was a file; it is looked at again when it is opened."""
    job, folder = output_of(served)
    (folder / "deep").mkdir()
    (folder / "deep" / "model.bin").write_text("ours")
    assert served.api("GET", f"/jobs/{job}/files/deep/model.bin").data == b"ours"
    (served.settings.data_dir / "elsewhere").mkdir()
    (served.settings.data_dir / "elsewhere" / "model.bin").write_text("hush")
    (folder / "deep").rename(folder / "moved")
    (folder / "deep").symlink_to(served.settings.data_dir / "elsewhere")
    assert served.api("GET", f"/jobs/{job}/files/deep/model.bin").status == 404


def open_files(folder):
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{fd}").startswith(str(folder))
    return found


def test_who_leaves_in_the_middle_leaves_no_file_open(served):
    job, folder = output_of(served)
    with open(folder / "large.bin", "wb") as file:
        file.truncate(256 * 1024 * 1024)
    for _ in range(5):
        with sockets.create_connection(("127.0.0.1", served.port)) as asked:
            asked.sendall(
                f"GET {BASE}/jobs/{job}/files/large.bin HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {served.key}\r\n\r\n".encode()
            )
            asked.recv(1000)
    until(lambda: open_files(folder) == 0, words="files are closed")


def test_who_leaves_before_the_first_byte_leaves_no_file_open(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 10)
    file = open(tmp_path / "file", "rb")  # noqa: SIM115

    async def send(_):
        raise OSError("gone")

    async def receive():
        return {"type": "http.disconnect"}

    answer = FileAnswer(file, 0, 10, {})
    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    with contextlib.suppress(Exception):
        asyncio.run(answer(scope, receive, send))
    assert file.closed


def test_an_open_socket_ends_with_its_session(served, monkeypatch):
    monkeypatch.setattr(live_socket, "_CHECK_KEY_S", 0.2)
    cookie, csrf = logged_in(served)
    own = f"http://127.0.0.1:{served.port}"
    url = f"ws://127.0.0.1:{served.port}{BASE}/monitor/ws"
    with connect(url, additional_headers={"Cookie": cookie, "Origin": own}) as socket:
        socket.send(json.dumps({"subscribe": ["jobs"]}))
        assert json.loads(socket.recv(20))["topic"] == "jobs"
        headers = {"Cookie": cookie, "X-CSRF-Token": csrf}
        assert served.api("DELETE", "/session", key="", headers=headers).status == 204
        with pytest.raises(ConnectionClosed) as closed:
            collections.deque(iter(lambda: socket.recv(20), None), maxlen=0)
        assert closed.value.rcvd.code == 1008


def test_no_answer_lets_another_site_read(served):
    for method in ("GET", "OPTIONS"):
        answer = served.api(method, "/jobs", headers={"Origin": "http://evil.example"})
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
