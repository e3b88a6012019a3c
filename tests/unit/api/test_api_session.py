"""Logging in with a browser: cookies, tokens against forged requests, links, and their ends."""

import json
import time

import pytest
from served import BASE, SMALL
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from runyard.engine.access.logins import LINK_S, LONGEST_S

DAY = 86400.0


class Browser:
    """Keeps the cookie, and sends what a page of ours would."""

    def __init__(self, served, **headers):
        self.served, self.headers = served, headers
        self.cookie = self.csrf = ""

    def log_in(self, **body):
        answer = self.served.api("POST", "/session", body, key="", headers=self.headers)
        assert answer.status == 200, answer.data
        self.set_cookie = answer.headers["Set-Cookie"]
        self.cookie = self.set_cookie.partition(";")[0]
        self.csrf = answer.body["csrf"]
        return answer.body

    def ask(self, method, path, body=None, *, csrf=None, **headers):
        sent = {**self.headers, "Cookie": f"theme=dark; {self.cookie}", **headers}
        token = self.csrf if csrf is None else csrf
        if token:
            sent["X-CSRF-Token"] = token
        return self.served.api(method, path, body, key="", headers=sent)


@pytest.fixture
def browser(served):
    made = Browser(served)
    made.log_in(key=served.user)
    return made


def test_a_key_gives_a_cookie_that_scripts_cannot_read(served):
    """R54: the browser uses a same-site HttpOnly session."""
    browser = Browser(served)
    who = browser.log_in(key=f" {served.user}\n")
    assert (who["name"], who["role"], who["scopes"]) == ("ann", "user", ["read", "write"])
    parts = browser.set_cookie.split("; ")
    assert parts[0].startswith(f"runyard_session_{served.port}=rys_")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(parts)
    assert "Secure" not in parts
    assert not any(part.startswith("Domain") for part in parts)
    assert served.user not in browser.set_cookie


@pytest.mark.parametrize("proto", ["https", "HTTPS, http"])
def test_the_cookie_is_secure_where_the_page_is(served, proto):
    browser = Browser(served, **{"X-Forwarded-Proto": proto})
    browser.log_in(key=served.user)
    assert "Secure" in browser.set_cookie.split("; ")


def test_who_am_i(served, browser):
    mine = browser.ask("GET", "/session")
    assert mine.status == 200
    assert mine.headers["Cache-Control"] == "no-store"
    assert mine.body["csrf"] == browser.csrf
    assert mine.body["expires_at"] > "2020"
    by_key = served.api("GET", "/session", key=served.viewer).body
    assert (by_key["name"], by_key["scopes"]) == ("vera", ["read"])
    assert (by_key["csrf"], by_key["expires_at"]) == (None, None)
    assert served.api("GET", "/session", key="").status == 401


def test_a_session_acts_as_its_key(served, browser):
    answer = browser.ask("POST", "/jobs", {**SMALL, "command": "true", "hold": True})
    assert answer.status == 201
    job = answer.body["job_id"]
    assert served.job(job)["owner"] == "ann"
    assert browser.ask("GET", "/jobs").status == 200
    assert browser.ask("GET", "/keys").code == "forbidden"
    other = served.submit(key=served.other, hold=True)
    assert browser.ask("POST", f"/jobs/{other}/cancel").code == "forbidden"


CHANGES = [
    ("POST", "/jobs", {**SMALL, "command": "true"}),
    ("POST", "/jobs/cancel", {"all": True}),
    ("DELETE", "/jobs/1", None),
    ("POST", "/session/link", None),
    ("DELETE", "/session", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_change_needs_the_token_of_the_page(served, browser, method, path, body):
    another = Browser(served)
    another.log_in(key=served.user)
    for token in ("", "wrong", "\xe9", another.csrf):
        answer = browser.ask(method, path, body, csrf=token or " ")
        assert (answer.status, answer.code) == (403, "wrong_csrf_token"), token
    assert browser.ask("GET", "/session").status == 200


def test_a_page_of_another_site_changes_nothing(served, browser):
    body = {**SMALL, "command": "true"}
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert browser.ask("POST", "/jobs", body, **headers).code == "wrong_origin"
        login = served.api("POST", "/session", {"key": served.user}, key="", headers=headers)
        assert login.code == "wrong_origin"
    own = f"http://127.0.0.1:{served.port}"
    assert browser.ask("POST", "/jobs", {**body, "hold": True}, Origin=own).status == 201


def test_the_origin_of_a_named_proxy_is_ours(make_served):
    served = make_served(allowed_hosts=("yard.example",))
    browser = Browser(served, **{"X-Forwarded-Host": "yard.example", "X-Forwarded-Proto": "https"})
    browser.log_in(key=served.user)
    assert browser.set_cookie.startswith("runyard_session=")
    job = {**SMALL, "command": "true", "hold": True}
    assert browser.ask("POST", "/jobs", job, Origin="https://yard.example").status == 201
    assert browser.ask("POST", "/jobs", job, Origin="https://x.example").code == "wrong_origin"
    made_up = {"X-Forwarded-Host": "evil.example", "Origin": "https://evil.example"}
    assert browser.ask("POST", "/jobs", job, **made_up).code == "wrong_origin"


def test_logging_out_ends_it_at_once(served, browser):
    another = Browser(served)
    another.log_in(key=served.user)
    gone = browser.ask("DELETE", "/session")
    assert gone.status == 204
    assert "Max-Age=0" in gone.headers["Set-Cookie"]
    assert browser.ask("GET", "/jobs").status == 401
    assert another.ask("GET", "/jobs").status == 200
    assert served.api("GET", "/jobs", key=served.user).status == 200


def test_wrong_keys_and_bodies_are_refused(served):
    for body, code in (
        ({"key": "wrong"}, "unauthenticated"),
        ({"key": "rys_wrong"}, "unauthenticated"),
        ({"key": "schlüssel"}, "unauthenticated"),
        ({"token": "ryl_wrong"}, "unauthenticated"),
        ({}, "invalid_request"),
        ({"key": "a", "token": "b"}, "invalid_request"),
        ({"key": 5}, "invalid_request"),
        ({"password": "a"}, "unknown_field"),
    ):
        answer = served.api("POST", "/session", body, key="")
        assert answer.code == code, body
        assert "Set-Cookie" not in answer.headers


def test_guessing_is_slowed_down_and_old_cookies_are_not_guessing(make_served):
    served = make_served()
    cookie = {"Cookie": f"runyard_session_{served.port}=rys_old"}
    old = [served.api("GET", "/session", key="", headers=cookie).status for _ in range(30)]
    assert set(old) == {401}
    tries = [served.api("POST", "/session", {"token": f"t{n}"}, key="").status for n in range(22)]
    assert tries[:20] == [401] * 20
    assert tries[20:] == [429] * 2
    assert served.api("POST", "/session", {"key": f"k{1}"}, key="").status == 429
    assert served.api("POST", "/session", {"key": served.user}, key="").status == 200


def test_a_session_is_extended_by_use_and_ends_at_last(make_served):
    served = make_served(session_days=2)
    browser = Browser(served)
    browser.log_in(key=served.user)
    began = time.time()
    real = served.parts.clock
    try:
        for days, status in ((1.5, 200), (3.0, 200), (4.5, 200), (7.0, 401)):
            _at(served, began + days * DAY)
            assert browser.ask("GET", "/jobs").status == status, days
        _at(served, began)
        browser.log_in(key=served.user)
        for day in range(1, 30):
            _at(served, began + day * DAY)
            assert browser.ask("GET", "/jobs").status == 200, day
        _at(served, began + LONGEST_S + 1)
        assert browser.ask("GET", "/jobs").status == 401
    finally:
        object.__setattr__(served.parts, "clock", real)


def _nothing(tx):
    del tx


def _at(served, moment):
    object.__setattr__(served.parts, "clock", lambda: moment)
    served.app.state.auth.forget()
    served.store.write(_nothing)  # what was to be written soon is written before


def test_a_session_ends_with_its_key(served):
    admin = Browser(served)
    admin.log_in(key=served.key)
    made = served.api("POST", "/keys", {"name": "short", "role": "user"}).body
    browser = Browser(served)
    browser.log_in(key=made["secret"])
    assert browser.ask("GET", "/jobs").status == 200
    assert admin.ask("DELETE", f"/keys/{made['key_id']}").status == 204
    assert browser.ask("GET", "/jobs").status == 401


def test_a_session_ends_when_its_key_does(make_served):
    served = make_served()
    made = served.api("POST", "/keys", {"name": "short", "expires_in_s": 3600}).body
    browser = Browser(served)
    browser.log_in(key=made["secret"])
    _at(served, time.time() + 3601)
    assert browser.ask("GET", "/jobs").status == 401


def test_the_store_knows_no_secret(make_served):
    served = make_served()
    browser = Browser(served)
    browser.log_in(key=served.user)
    link = served.api("POST", "/session/link").body["token"]
    served.store.write(_nothing)
    secret = browser.cookie.partition("=")[2]
    for file in served.settings.data_dir.glob("runyard.db*"):
        data = file.read_bytes()
        assert secret.encode() not in data
        assert link.encode() not in data


def test_a_link_lets_one_browser_in_once(served):
    link = served.api("POST", "/session/link", key=served.viewer)
    assert link.status == 201
    assert link.headers["Cache-Control"] == "no-store"
    token = link.body["token"]
    assert link.body["path"] == f"/login#token={token}"
    browser = Browser(served)
    assert browser.log_in(token=token)["name"] == "vera"
    assert browser.ask("GET", "/jobs").status == 200
    again = served.api("POST", "/session", {"token": token}, key="")
    assert (again.status, again.code) == (401, "unauthenticated")


def test_a_link_is_good_for_minutes_and_not_after_its_key(make_served):
    served = make_served()
    made = served.api("POST", "/keys", {"name": "short"}).body
    tokens = [served.api("POST", "/session/link", key=made["secret"]).body["token"] for _ in "12"]
    _at(served, time.time() + LINK_S + 1)
    assert served.api("POST", "/session", {"token": tokens[0]}, key="").status == 401
    _at(served, time.time())
    served.api("DELETE", f"/keys/{made['key_id']}")
    assert served.api("POST", "/session", {"token": tokens[1]}, key="").status == 401


def test_the_cookie_of_another_port_is_not_ours(served, browser):
    name, _, secret = browser.cookie.partition("=")
    other = {"Cookie": f"runyard_session_1={secret}; runyard_session={secret}"}
    assert served.api("GET", "/jobs", key="", headers=other).status == 401
    mixed = {"Cookie": f"runyard_session_1=rys_x; {name}={secret}"}
    assert served.api("GET", "/jobs", key="", headers=mixed).status == 200


def test_a_key_goes_before_a_cookie(served, browser):
    sent = {"Cookie": browser.cookie}
    assert served.api("GET", "/session", key=served.viewer, headers=sent).body["name"] == "vera"
    basic = {**sent, "Authorization": "Basic cHJveHk6eA=="}
    assert served.api("GET", "/session", key="", headers=basic).body["name"] == "ann"


# the live socket


def _live(served, **headers):
    url = f"ws://127.0.0.1:{served.port}{BASE}/monitor/ws"
    return connect(url, additional_headers=headers, open_timeout=10)


def test_the_live_socket_takes_the_cookie_of_our_page(served, browser):
    own = f"http://127.0.0.1:{served.port}"
    with _live(served, Cookie=browser.cookie, Origin=own) as socket:
        socket.send(json.dumps({"subscribe": ["jobs"]}))
        assert json.loads(socket.recv(20))["topic"] == "jobs"
        job = served.submit(hold=True)
        assert any(job in socket.recv(20) for _ in range(50))


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null", "http://127.0.0.1:1"])
def test_the_live_socket_takes_no_cookie_of_another_page(served, browser, origin):
    headers = {"Cookie": browser.cookie} | ({"Origin": origin} if origin else {})
    with pytest.raises(InvalidStatus) as refused:
        _live(served, **headers)
    assert refused.value.response.status_code == 403


def test_the_live_socket_refuses_a_session_that_ended(served, browser):
    browser.ask("DELETE", "/session")
    own = f"http://127.0.0.1:{served.port}"
    with pytest.raises(InvalidStatus) as refused:
        _live(served, Cookie=browser.cookie, Origin=own)
    assert refused.value.response.status_code == 401
