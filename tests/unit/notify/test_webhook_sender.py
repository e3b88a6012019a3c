"""What a webhook gets, and what is made of its answers."""

import time

import pytest
from outbox_samples import START, delivery

from runyard import __version__
from runyard.domain.job import NotifyTarget
from runyard.notify.base import Undelivered
from runyard.notify.webhook import WebhookSender, signature
from webhook_receiver import WebhookReceiver

SECRET = "hook-secret-0123456789"


def send(url, *, secret=SECRET, timeout_s=10.0):
    WebhookSender(timeout_s).send(NotifyTarget("webhook", url, secret), delivery(), START)


def refused(url, **options):
    with pytest.raises(Undelivered) as caught:
        send(url, **options)
    return caught.value


def test_the_signature_covers_the_time_and_the_body(receiver):
    """R16, R38"""
    send(receiver.url)
    [got] = receiver.got
    assert got.headers["X-Runyard-Signature"].startswith(f"t={int(START)},v1=")
    assert got.signed_by(SECRET)
    assert not got.signed_by("another")
    assert got.headers["X-Runyard-Timestamp"] == str(int(START))
    assert got.headers["User-Agent"] == f"Runyard/{__version__}"
    assert got.headers["Content-Type"] == "application/json"
    assert (got.delivery, got.headers["X-Runyard-Event"]) == ("dlv-1", "failed")
    assert got.body == delivery().body
    assert SECRET not in str(got.headers) + got.raw.decode()


def test_a_signature_as_another_program_makes_it():
    """echo -n '1700000000.{}' | openssl dgst -sha256 -hmac key"""
    wanted = "9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
    assert signature("key", 1700000000, b"{}") == f"t=1700000000,v1={wanted}"


def test_without_a_secret_nothing_is_signed(receiver):
    send(receiver.url, secret=None)
    assert "X-Runyard-Signature" not in receiver.got[0].headers


def test_a_login_in_the_address_becomes_a_header(receiver):
    send(receiver.url.replace("127", "ann:p%40ss@127"))
    [got] = receiver.got
    assert got.headers["Authorization"] == "Basic YW5uOnBAc3M="
    assert "ann" not in got.headers["Host"]


def test_the_query_of_the_address_is_kept(receiver):
    send(receiver.url + "?key=1&x=a%20b")
    assert receiver.got[0].path == "/hook?key=1&x=a%20b"


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
def test_anything_but_2xx_is_tried_again(receiver, status):
    receiver.answer = status
    failed = refused(receiver.url)
    assert (failed.reason.code, failed.reason.params) == ("http_status", {"status": status})
    assert failed.again


def test_a_wish_to_wait_is_heard_and_bounded(receiver):
    receiver.answer, receiver.headers = 429, {"Retry-After": "70"}
    assert refused(receiver.url).wished_s == 70
    receiver.headers = {"Retry-After": "99999999"}
    assert refused(receiver.url).wished_s == 3600
    receiver.headers = {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}
    assert refused(receiver.url).wished_s == 0


def test_nobody_listens(receiver):
    receiver.down()
    failed = refused(receiver.url)
    assert (failed.reason.code, failed.again) == ("unreachable", True)
    assert "refused" in failed.reason.params["why"]


def test_a_name_nobody_knows():
    failed = refused("http://no-such-host.invalid/x")
    assert failed.reason.params == {"why": "the name is not known"}


@pytest.mark.parametrize("slow", ["delay_s", "drip_s"])
def test_a_slow_receiver_is_given_so_long_and_no_longer(receiver, slow):
    setattr(receiver, slow, 100.0)
    before = time.monotonic()
    failed = refused(receiver.url, timeout_s=0.5)
    assert failed.reason.code == "no_answer"
    assert time.monotonic() - before < 60


def test_a_redirect_to_another_host_is_not_followed(receiver):
    """Not even with the same port elsewhere: what is sent is for whom it was given to."""
    other = WebhookReceiver().up()
    try:
        for status in (301, 302, 303, 307, 308):
            receiver.answer, receiver.headers = status, {"Location": other.url}
            failed = refused(receiver.url)
            assert (failed.reason.code, failed.reason.params["status"]) == ("redirected", status)
        assert other.got == []
    finally:
        other.down()


def test_a_redirect_within_the_host_is_followed_a_few_times(receiver):
    receiver.answer, receiver.headers = 307, {"Location": "/round?and=round"}
    assert refused(receiver.url).reason.code == "redirected"
    paths = [got.path for got in receiver.got]
    assert paths == ["/hook", *["/round?and=round"] * 3]
    assert len({got.raw for got in receiver.got}) == 1


def test_a_redirect_that_would_change_the_request_is_not_followed(receiver):
    receiver.answer, receiver.headers = 302, {"Location": "/elsewhere"}
    assert refused(receiver.url).reason.code == "redirected"
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",  # the same as one number
        "http://0xa9.254.43518/",
        "http://100.100.100.200/",
    ],
)
def test_addresses_that_hand_out_credentials_are_never_called(url):
    """The test run itself refuses to connect anywhere: it is not even tried."""
    failed = refused(url)
    assert (failed.reason.code, failed.again) == ("address_refused", False)


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "http://127.0.0.1:99999/", "http://[::/"])
def test_what_is_no_address_is_given_up_at_once(url):
    failed = refused(url)
    assert (failed.reason.code, failed.again) == ("bad_address", False)


def test_a_certificate_nobody_trusts(tmp_path, receiver):
    """What is sent over TLS goes only to whom the certificate names."""
    import ssl
    import subprocess

    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    made += ["-keyout", str(key), "-out", str(cert), "-days", "2"]
    try:
        subprocess.run(made, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is missing")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    receiver._server.socket = context.wrap_socket(receiver._server.socket, server_side=True)
    failed = refused(receiver.url.replace("http://127.0.0.1", "https://localhost"))
    assert failed.reason.code == "bad_certificate"
    assert receiver.got == []


def test_an_answer_without_end_is_not_read_to_its_end(receiver):
    receiver.reply = b"x" * 5_000_000
    send(receiver.url)
    assert len(receiver.got) == 1
