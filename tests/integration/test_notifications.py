"""Notifications of real servers to a real receiver that is down, slow, failing or misleading."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from webhook_receiver import WebhookReceiver
from yards import SMALL, until

SECRET = "hook-secret-0123456789"
QUICK = {"RUNYARD_NOTIFY_RETRY_DELAYS": "0.2,0.2,0.5"}
ENDS = ["completed", "failed", "cancelled"]


@pytest.fixture
def receiver():
    made = WebhookReceiver().up()
    yield made
    made.down()


def notify(receiver, **fields):
    return [{"type": "webhook", "url": receiver.url, "secret": SECRET, **fields}]


def deliveries(yard, query=""):
    return yard.ask(f"/notifications/deliveries{query}")


def arrived(receiver):
    """(job, event) of what the receiver took, each as often as it came."""
    return Counter((got.body["job"]["job_id"], got.body["event"]) for got in receiver.taken())


def three_ends(yard, receiver):
    """Jobs that complete, fail and are cancelled, with how they end."""
    ends = {
        yard.submit(["true"], notify=notify(receiver)): "completed",
        yard.submit(["false"], notify=notify(receiver)): "failed",
        (cancelled := yard.submit(["sleep", "600"], notify=notify(receiver))): "cancelled",
    }
    yard.wait(cancelled, "running")
    assert yard.cancel(cancelled).status == 200
    for ref, status in ends.items():
        yard.wait(ref, status)
    return ends


def test_ends_are_told_signed_and_once(make_yard, receiver):
    """R38"""
    yard = make_yard(env=QUICK).start()
    ends = three_ends(yard, receiver)
    until(lambda: len(arrived(receiver)) == 3)
    assert arrived(receiver) == Counter(ends.items())
    assert all(got.signed_by(SECRET) for got in receiver.got)
    told = {got.body["job"]["job_id"]: got.body["job"] for got in receiver.got}
    for ref, status in ends.items():
        job = yard.job(ref)
        assert told[ref]["status"] == status
        assert told[ref]["exit_code"] == job["attempt"]["exit_code"]
        assert told[ref]["ended_at"] == job["completed_at"]
        assert told[ref]["reason"] == job["reason"]
        assert told[ref]["url"] == f"{yard.url}/jobs/{ref}"  # its page, for people
    until(lambda: {one["status"] for one in deliveries(yard)} == {"sent"})
    assert {one["delivery"] for one in deliveries(yard)} == {got.delivery for got in receiver.got}


def test_a_receiver_that_is_down_gets_every_event_when_it_is_back(make_yard, receiver):
    """R38; also over a kill -9 of the server, repeats with the same delivery id."""
    yard = make_yard(env=QUICK).start()
    receiver.answer = 500
    first = three_ends(yard, receiver)
    until(lambda: len(receiver.got) >= 4, words="nothing was tried again")
    receiver.down()
    second = {yard.submit(["true"], notify=notify(receiver)): "completed"}
    for ref in second:
        yard.wait(ref, "completed")
    until(lambda: any(one["error"] for one in deliveries(yard, "?status=waiting,sending")))
    yard.kill9()
    receiver.answer = 200
    receiver.up()
    yard.start()
    wanted = Counter((first | second).items())
    until(lambda: arrived(receiver) >= wanted, 60, lambda: arrived(receiver))
    until(lambda: {one["status"] for one in deliveries(yard)} == {"sent"})
    assert arrived(receiver) == wanted, "each once, as the receiver never took one before"
    ids = {}
    for got in receiver.got:
        ids.setdefault((got.body["job"]["job_id"], got.body["event"]), set()).add(got.delivery)
    assert all(len(same) == 1 for same in ids.values()), "a repeat has the same id"
    assert all(got.signed_by(SECRET) for got in receiver.got)


@pytest.mark.slow
def test_a_receiver_that_is_down_for_a_minute(make_yard, receiver):
    """R38; with the delays that servers have, but for the first ones."""
    yard = make_yard(env={"RUNYARD_NOTIFY_RETRY_DELAYS": "5,10,30"}).start()
    receiver.down()
    ends = three_ends(yard, receiver)
    time.sleep(60)
    assert {one["status"] for one in deliveries(yard)} <= {"waiting", "sending"}
    receiver.up()
    until(lambda: arrived(receiver) == Counter(ends.items()), 45)


def test_ends_found_after_a_restart_are_told(make_yard, receiver, tmp_path):
    """R38; the job ended while no server ran."""
    yard = make_yard(env=QUICK).start()
    go = tmp_path / "go"
    ref = yard.submit(f"while [ ! -e {go} ]; do sleep 0.05; done; exit 5", notify=notify(receiver))
    yard.wait(ref, "running")
    yard.kill9()
    go.touch()
    yard.start()
    until(lambda: arrived(receiver) == Counter([(ref, "failed")]))
    assert receiver.got[0].body["job"]["exit_code"] == 5


def test_a_slow_receiver_and_a_misleading_one_hold_up_nobody(make_yard, receiver):
    slow, misleading = WebhookReceiver().up(), WebhookReceiver().up()
    try:
        slow.delay_s = 30.0
        misleading.answer, misleading.headers = 307, {"Location": receiver.url}
        yard = make_yard(env=QUICK).start()
        refs = [
            yard.submit(["true"], notify=[*notify(slow), *notify(misleading), *notify(receiver)])
            for _ in range(10)
        ]
        for ref in refs:
            yard.wait(ref, "completed")
        until(lambda: len(arrived(receiver)) == 10, words=lambda: arrived(receiver))

        def misled():
            told = [one for one in deliveries(yard) if one["target"]["url"] == misleading.url]
            return {one["error"]["code"] for one in told if one["error"]}

        until(misled)
        assert misled() == {"redirected"}
        assert len(receiver.taken()) == 10, "what was for another was not led here"
    finally:
        slow.down()
        misleading.down()


def test_what_ends_in_a_shutdown_is_told_before_it_is_over(make_yard, receiver):
    yard = make_yard(env=QUICK).start()
    ref = yard.submit(["sleep", "600"], notify=notify(receiver), grace_s=1)
    yard.wait(ref, "running")
    assert yard.terminate() == 0
    assert arrived(receiver) == Counter([(ref, "cancelled")])
    assert receiver.got[0].body["job"]["reason"]["code"] == "shutdown"


def test_two_servers_send_each_once(make_yard, postgres_url, receiver):
    """R38, R55"""
    flags = ["--database-url", postgres_url]
    yards = [
        make_yard(*flags, max_concurrent=4, env={**QUICK, "RUNYARD_NODE_NAME": name})
        for name in ("one", "two")
    ]
    with ThreadPoolExecutor() as pool:
        one, two = pool.map(lambda yard: yard.start(), yards)
    made = one.api("POST", "/notifications", {"name": "team", "url": receiver.url})
    assert made.status == 201
    jobs = [{**SMALL, "command": ["true"]} for _ in range(20)]
    refs = []
    for yard in (one, two):
        answer = yard.api("POST", "/jobs/batch", {"jobs": jobs})
        refs += [job["job_id"] for job in answer.body["jobs"]]
    receiver.answer = 503
    until(lambda: len(receiver.got) >= 5)
    receiver.answer = 200
    until(lambda: len(arrived(receiver)) == 40, 60, lambda: len(arrived(receiver)))
    until(lambda: {sent["status"] for sent in deliveries(two)} == {"sent"})
    assert arrived(receiver) == Counter((ref, "completed") for ref in refs)


def test_a_server_that_died_while_sending_is_replaced_by_another(
    make_yard, postgres_url, receiver
):
    """R38; what it had written and not sent is sent by the server that is left."""
    env = {**QUICK, "RUNYARD_NOTIFY_RETRY_DELAYS": "1"}
    one = make_yard("--database-url", postgres_url, env=env).start()
    receiver.answer = 500
    ref = one.submit(["true"], notify=notify(receiver))
    until(lambda: receiver.got)
    one.wait(ref, "completed")
    until(lambda: deliveries(one)[0]["status"] == "waiting")
    one.kill9()
    receiver.answer = 200
    two = make_yard("--database-url", postgres_url, env=env).start()
    until(lambda: arrived(receiver) == Counter([(ref, "completed")]), 60)
    until(lambda: deliveries(two)[0]["tries"] >= 2)  # counted when it was answered


def test_targets_of_the_workspace_over_http(make_yard, receiver):
    """R16; their secrets are never shown again, to nobody."""
    yard = make_yard(env=QUICK).start()
    url = receiver.url.replace("127", "ann:pass-of-ann@127") + "?token=in-query"
    body = {"name": "team", "url": url, "secret": SECRET, "events": [*ENDS, "alert"]}
    made = yard.api("POST", "/notifications", body)
    assert made.status == 201
    shown = made.body
    assert shown["url"] == f"http://***@127.0.0.1:{receiver.port}/hook?***"
    assert (shown["secret"], shown["enabled"]) == ("***", True)
    assert yard.ask("/notifications") == [shown]
    assert yard.api("POST", "/notifications", body).status == 409
    assert yard.api("POST", "/notifications", {"name": "x"}).status == 422
    off = yard.api("PUT", f"/notifications/{shown['id']}", {**shown_back(shown), "enabled": False})
    assert (off.status, off.body["enabled"]) == (200, False)
    tried = yard.api("POST", f"/notifications/{shown['id']}/test").body
    assert (tried["status"], tried["event"], tried["error"]) == ("sent", "test", None)
    [got] = receiver.got
    assert got.signed_by(SECRET), "a change that gave back masked values kept the true ones"
    assert got.headers["Authorization"].startswith("Basic ")
    assert got.path == "/hook?token=in-query"
    ref = yard.submit(["true"])
    yard.wait(ref, "completed")
    yard.api("PUT", f"/notifications/{shown['id']}", {"enabled": True})
    ref = yard.submit(["true"])
    until(lambda: len(receiver.got) > 1)
    assert receiver.got[-1].body["job"]["job_id"] == ref
    assert len(receiver.got) == 2, "while it was off it was told nothing"
    assert yard.api("DELETE", f"/notifications/{shown['id']}").status == 204
    assert yard.api("DELETE", f"/notifications/{shown['id']}").status == 404
    everything = json.dumps([yard.ask("/notifications/deliveries"), shown, off.body, tried])
    log = (yard.data / "logs" / "server.log").read_text()
    for hidden in (SECRET, "pass-of-ann", "in-query"):
        assert hidden not in everything
        assert hidden not in log + yard.said()


def shown_back(shown):
    return {name: shown[name] for name in ("name", "type", "url", "secret", "events", "enabled")}


def test_secrets_of_a_job_are_never_shown(make_yard, receiver):
    yard = make_yard(env=QUICK).start()
    receiver.answer = 500
    url = receiver.url + "?token=in-query"
    ref = yard.submit(["true"], notify=[{"url": url, "secret": SECRET}])
    yard.wait(ref, "completed")
    until(lambda: any(one["error"] for one in deliveries(yard)))
    shown = yard.job(ref)["notify"]
    assert shown == [
        {"type": "webhook", "url": f"{receiver.url}?***", "secret": "***", "events": ENDS}
    ]
    said = json.dumps([shown, deliveries(yard), yard.ask(f"/jobs/{ref}/events")])
    said += (yard.data / "logs" / "server.log").read_text() + yard.said()
    assert SECRET not in said
    assert "in-query" not in said


def test_a_test_says_why_it_did_not_arrive(make_yard, receiver):
    yard = make_yard(env=QUICK).start()

    def tried(**target):
        answer = yard.api("POST", "/notifications/test", target)
        assert answer.status == 200, answer.data
        return answer.body

    assert tried(url=receiver.url)["status"] == "sent"
    receiver.answer = 404
    failed = tried(url=receiver.url)
    assert (failed["status"], failed["tries"]) == ("given_up", 1)
    assert failed["error"] == {"code": "http_status", "params": {"status": 404}}
    receiver.down()
    assert tried(url=receiver.url)["error"]["code"] == "unreachable"
    metadata = yard.api("POST", "/notifications/test", {"url": "http://169.254.169.254/"})
    assert metadata.status == 422
    assert tried(url="http://2852039166/")["error"]["code"] == "address_refused"
    assert yard.api("POST", "/notifications/99/test").status == 404


def test_roles(make_yard, receiver):
    """Admins decide for the workspace; others for their own jobs."""
    yard = make_yard(env=QUICK).start()
    keys = {
        role: yard.api("POST", "/keys", {"name": role, "role": role}).body["secret"]
        for role in ("user", "viewer")
    }
    body = {"name": "team", "url": receiver.url}
    assert yard.api("POST", "/notifications", body).status == 201
    admins_key = yard.key
    for role, secret in keys.items():
        yard.key = secret
        assert yard.api("GET", "/notifications").status == 403
        assert yard.api("POST", "/notifications", {**body, "name": role}).status == 403
        assert yard.api("PUT", "/notifications/1", body).status == 403
        assert yard.api("DELETE", "/notifications/1").status == 403
        assert yard.api("POST", "/notifications/1/test").status == 403
        may_try = yard.api("POST", "/notifications/test", {"url": receiver.url}).status
        assert may_try == (200 if role == "user" else 403)
        assert deliveries(yard) == []
    yard.key = keys["user"]
    mine = yard.submit(["true"])
    yard.wait(mine, "completed")
    yard.key = admins_key
    other = yard.submit(["true"])
    yard.wait(other, "completed")
    until(lambda: {one["job_id"] for one in deliveries(yard)} == {mine, other, None})
    assert [one["job_id"] for one in deliveries(yard, f"?job={other}")] == [other]
    yard.key = keys["user"]
    assert [one["job_id"] for one in deliveries(yard)] == [mine]


def test_the_command_line(make_yard, receiver):
    yard = make_yard(env=QUICK).start()

    def run(*words, code=0):
        done = yard.cli("notify", *words)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert "Nobody" in run("ls")
    assert "failed, alert" in run(
        "add", "team", receiver.url, "--secret", SECRET, "--event", "failed", "--event", "alert"
    )
    listed = run("ls")
    assert "team" in listed
    assert SECRET not in listed
    assert json.loads(run("ls", "--json"))[0]["events"] == ["failed", "alert"]
    assert run("test", "team").strip() == "It arrived."
    receiver.answer = 500
    assert "answered 500" in run("test", "team", code=1)
    assert "answered 500" in run("test", receiver.url, code=1)
    assert "did not arrive" in run("test", "nosuch://x", code=1)
    assert "given_up" in run("deliveries", "--status", "given_up")
    assert len(run("deliveries", "-q").split()) >= 3
    run("rm", "team")
    run("rm", "team", code=4)
    assert json.loads(run("--json")) == []


def test_apprise_for_real(make_yard, receiver):
    """R16, R38; its json:// service is plain HTTP."""
    pytest.importorskip("apprise")
    yard = make_yard(env={**QUICK, "RUNYARD_NOTIFY_LANG": "zh"}).start()
    address = receiver.url.replace("http://", "json://ann:pass-of-ann@", 1)
    ref = yard.submit(["true"], name="nano", notify=[{"type": "apprise", "url": address}])
    until(lambda: receiver.got, 60)
    assert receiver.got[0].body["title"] == "任务 nano 已完成"
    assert yard.job(ref)["notify"][0]["url"] == "json://***"
    receiver.answer = 500
    yard.submit(["true"], notify=[{"type": "apprise", "url": address}])
    until(lambda: any(one["error"] for one in deliveries(yard)), 60)
    log = (yard.data / "logs" / "server.log").read_text()
    assert "pass-of-ann" not in log + yard.said() + json.dumps(deliveries(yard))


def test_feishu_for_real(make_yard, receiver):
    """R16; a bot that answers as the service does."""
    yard = make_yard(env=QUICK).start()
    receiver.reply = b'{"code":19021,"msg":"sign match fail"}'
    ref = yard.submit(["true"], notify=[{"type": "feishu", "url": receiver.url, "secret": "k"}])
    yard.wait(ref, "completed")
    error = until(lambda: deliveries(yard)[0]["error"])
    assert error["params"]["said"] == "sign match fail"
    receiver.reply = b'{"code":0,"msg":"success"}'
    until(lambda: deliveries(yard)[0]["status"] == "sent")
    assert ref in receiver.got[-1].body["content"]["text"]
