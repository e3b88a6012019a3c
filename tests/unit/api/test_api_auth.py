"""Who may do what, and what is refused before anything is done."""

import asyncio
import threading

import pytest
from served import BASE, SMALL

from runyard.api.auth import Auth, is_local
from runyard.api.failed_logins import FailedLogins
from runyard.api.hosts import Hosts
from runyard.domain import errors
from runyard.engine.access.actor import Actor


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer wrong", "x y z"])
def test_without_a_good_key_nothing_is_told(served, header):
    """R54: Authorization: Bearer <key>."""
    answer = served.api("GET", "/jobs", key="", headers={"Authorization": header})
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert served.call("GET", "/nowhere", key="").status == 401


ROUTES = [
    # method, path, body, and the roles that may: admin, owner, other user, viewer
    ("GET", "/jobs", None, "AOUV"),
    ("GET", "/jobs/{job}", None, "AOUV"),
    ("GET", "/jobs/{job}/logs", None, "AOUV"),
    ("GET", "/jobs/{job}/events", None, "AOUV"),
    ("GET", "/queue/status", None, "AOUV"),
    ("GET", "/nodes", None, "AOUV"),
    ("GET", "/gpus", None, "AOUV"),
    ("POST", "/jobs", {**SMALL, "command": "true", "hold": True}, "AOU"),
    ("POST", "/jobs/batch", [{**SMALL, "command": "true", "hold": True}], "AOU"),
    ("POST", "/jobs/{job}/hold", None, "AO"),
    ("POST", "/jobs/{job}/release", None, "AO"),
    ("POST", "/queue/enqueue/{job}", None, "AO"),
    ("POST", "/jobs/{job}/cancel", None, "AO"),
    ("POST", "/jobs/{job}/force-kill", None, "AO"),
    ("POST", "/queue/cancel/{job}", None, "AO"),
    ("POST", "/jobs/{job}/retry", None, "AO"),
    ("DELETE", "/jobs/{job}", None, "AO"),
    ("POST", "/system/stop-queue", None, "A"),
    ("POST", "/system/start-queue", None, "A"),
    ("POST", "/nodes/node-1/drain", None, "A"),
    ("POST", "/nodes/node-1/undrain", None, "A"),
    ("POST", "/gpus/0/fence", None, "A"),
    ("POST", "/gpus/0/unfence", None, "A"),
    ("GET", "/keys", None, "A"),
    ("POST", "/keys", {"name": "bad name"}, "A"),
    ("DELETE", "/keys/9999", None, "A"),
]


@pytest.mark.parametrize(("method", "path", "body", "allowed"), ROUTES)
def test_roles(served, method, path, body, allowed):
    """Admin all; a user acts on own jobs; a viewer reads."""
    keys = {"V": served.viewer, "U": served.other, "O": served.user, "A": served.key}
    for letter, key in keys.items():
        job = served.submit(key=served.user, hold=True)
        answer = served.api(method, path.format(job=job), body, key=key)
        if letter in allowed:
            assert answer.status not in (401, 403), f"{letter}: {answer.data}"
        else:
            assert (answer.status, answer.code) == (403, "forbidden"), letter


def test_a_user_cancels_many_only_among_own_jobs(served):
    mine = served.submit(key=served.user, hold=True)
    others = served.submit(key=served.other, hold=True)
    answer = served.api("POST", "/jobs/cancel", {"all": True}, key=served.user).body
    assert answer["cancelled"] == [mine]
    answer = served.api("POST", "/jobs/cancel", {"ids": [others]}, key=served.user).body
    assert answer["refused"][0]["code"] == "forbidden"
    wanted = {"filter": {"owner": ["bob"]}}
    assert served.api("POST", "/jobs/cancel", wanted, key=served.user).status == 403
    assert served.api("POST", "/jobs/cancel", {"all": True}, key=served.viewer).status == 403
    assert served.job(others)["status"] == "pending"


def test_wrong_keys_are_limited_and_a_good_one_is_not(make_served):
    served = make_served()
    statuses = [served.api("GET", "/jobs", key=f"wrong-{n}").status for n in range(25)]
    assert statuses[:20] == [401] * 20
    assert statuses[20:] == [429] * 5
    limited = served.api("GET", "/jobs", key="wrong-again")
    assert limited.code == "too_many_failed_logins"
    assert 0 < int(limited.headers["Retry-After"]) <= 60
    assert served.api("GET", "/jobs").status == 200
    assert served.api("GET", "/jobs", key=served.viewer).status == 200
    assert served.api("GET", "/jobs", key="").status == 401


def test_the_window_moves():
    now = [0.0]
    failed = FailedLogins(limit=3, window_s=60, clock=lambda: now[0])
    for second in (0, 10, 20):
        now[0] = second
        assert failed.retry_after("10.0.0.1") == 0
        failed.failed("10.0.0.1")
    assert failed.retry_after("10.0.0.1") == 40
    assert failed.retry_after("10.0.0.2") == 0
    now[0] = 60
    assert failed.retry_after("10.0.0.1") == 0
    failed.failed("10.0.0.1")
    assert failed.retry_after("10.0.0.1") == 10


def test_addresses_of_one_network_count_together_and_are_forgotten():
    failed = FailedLogins(limit=1, addresses=2)
    failed.failed("2001:db8::1")
    assert failed.retry_after("2001:db8::ffff") > 0
    assert failed.retry_after("2001:db8:0:1::1") == 0
    failed.failed("::ffff:10.0.0.9")
    assert failed.retry_after("10.0.0.9") > 0
    failed.failed("10.0.0.8")
    assert failed.retry_after("2001:db8::1") == 0


def scope(secret="good", client="10.0.0.1", path="/x"):
    headers = [(b"authorization", b"Bearer " + secret.encode())]
    return {"path": path, "headers": headers, "client": (client, 1)}


def test_a_key_is_remembered_for_a_moment_only():
    now, asked = [0.0], []

    def authenticate(secret):
        asked.append(secret)
        return Actor("ann", "user") if secret == "good" else None

    auth = Auth(authenticate, clock=lambda: now[0])

    async def ask(secret="good"):
        return await auth.identify(scope(secret))

    async def story():
        assert (await ask()).name == "ann"
        await ask()
        assert asked == ["good"]
        now[0] = 3.0
        await ask()
        assert asked == ["good", "good"]
        auth.forget()
        await ask()
        assert asked == ["good"] * 3
        for _ in range(3):
            with pytest.raises(errors.Unauthenticated):
                await ask("bad")
        assert asked[3:] == ["bad"]

    asyncio.run(story())


def test_pages_for_this_machine_need_a_key_from_elsewhere(served):
    for path in ("/docs", "/openapi.json", "/metrics"):
        assert served.call("GET", path, key="").status == 200
        away = {"X-Forwarded-For": "10.1.2.3"}
        assert served.call("GET", path, key="", headers=away).status == 401
        assert served.call("GET", path, headers=away).status == 200
    assert is_local(scope(client="127.0.0.5"))
    assert is_local(scope(client="::ffff:127.0.0.1"))
    assert not is_local(scope(client="192.168.0.1"))
    assert not is_local({"headers": [], "client": None})
    assert not is_local(scope(client="unix"))


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        ("localhost:8765", True),
        ("127.0.0.1:8765", True),
        ("[::1]:8765", True),
        ("192.168.1.5", True),
        ("yard.example:80", True),
        ("YARD.example", True),
        ("a.localhost", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_the_server_goes_by_its_own_names_only(host, fits):
    hosts = Hosts(["127.0.0.1", "yard.example"])
    headers = [(b"host", host.encode())]
    if fits:
        hosts.check("GET", headers)
    else:
        with pytest.raises(errors.WrongHost):
            hosts.check("GET", headers)


def test_a_rebound_name_and_a_foreign_page_are_refused(served):
    answer = served.call("GET", "/healthz", headers={"Host": "evil.example"})
    assert (answer.status, answer.code) == (421, "wrong_host")
    job = served.submit(hold=True)
    foreign = served.api("POST", f"/jobs/{job}/cancel", headers={"Origin": "http://evil.example"})
    assert (foreign.status, foreign.code) == (403, "wrong_origin")
    hidden = served.api("POST", f"/jobs/{job}/cancel", headers={"Sec-Fetch-Site": "cross-site"})
    assert hidden.code == "wrong_origin"
    null = served.api("POST", f"/jobs/{job}/cancel", headers={"Origin": "null"})
    assert null.code == "wrong_origin"
    assert served.job(job)["status"] == "pending"
    own = {"Origin": f"http://127.0.0.1:{served.port}"}
    assert served.api("POST", f"/jobs/{job}/cancel", headers=own).status == 200
    assert served.api("GET", "/jobs", headers={"Origin": "http://evil.example"}).status == 200


def test_every_answer_has_its_own_id(served):
    ids = {served.call("GET", "/healthz").headers["X-Request-Id"] for _ in range(5)}
    assert len(ids) == 5


def test_a_slow_key_check_does_not_hold_up_others(make_served, monkeypatch):
    served = make_served()
    assert served.api("GET", "/jobs").status == 200
    original = served.app.state.auth._authenticate
    begun, gate = threading.Event(), threading.Event()

    def slow(secret):
        if secret.startswith("wrong"):
            begun.set()
            gate.wait(100)
        return original(secret)

    monkeypatch.setattr(served.app.state.auth, "_authenticate", slow)
    flood = [
        threading.Thread(
            target=served.call, args=("GET", f"{BASE}/jobs"), kwargs={"key": f"wrong{n}"}
        )
        for n in range(6)
    ]
    for thread in flood:
        thread.start()
    assert begun.wait(60)
    assert served.call("GET", "/healthz").status == 200
    gate.set()
    for thread in flood:
        thread.join(60)
