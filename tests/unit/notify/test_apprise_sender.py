"""The services of the apprise package, tried for real on the one that is plain HTTP."""

import logging
import sys

import pytest
from outbox_samples import START, delivery

from runyard.domain.job import NotifyTarget
from runyard.notify.apprise_services import AppriseSender
from runyard.notify.base import Undelivered

# What its plugins import when they are looked through is not ours.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")


def send(url, lang="en", event="failed"):
    AppriseSender(lang).send(NotifyTarget("apprise", url), delivery(event), START)


def failed(url):
    with pytest.raises(Undelivered) as caught:
        send(url)
    return caught.value


def test_a_service_is_told_in_words(receiver):
    """R16, R38"""
    pytest.importorskip("apprise")
    send(receiver.url.replace("http", "json", 1))
    [got] = receiver.got
    assert got.body["title"] == "Job llama-7b failed"
    assert "Exit code: 3" in got.body["message"]
    assert got.body["type"] == "failure"


def test_a_completed_job_is_good_news(receiver):
    pytest.importorskip("apprise")
    send(receiver.url.replace("http", "json", 1), "zh", "completed")
    assert receiver.got[0].body["type"] == "success"
    assert receiver.got[0].body["title"] == "任务 llama-7b 已完成"


def test_a_service_that_fails_is_tried_again_and_leaks_nothing(receiver, caplog):
    pytest.importorskip("apprise")
    receiver.answer = 500
    caplog.set_level(logging.DEBUG)
    address = receiver.url.replace("http://", "json://ann:p4ssw0rd-of-ann@", 1)
    why = failed(address)
    assert (why.reason.code, why.reason.params, why.again) == (
        "apprise_failed",
        {"service": "json"},
        True,
    )
    assert "p4ssw0rd-of-ann" not in caplog.text + repr(why.reason)


def test_an_address_no_service_knows_is_given_up():
    pytest.importorskip("apprise")
    why = failed("nosuchservice://token")
    assert (why.reason.code, why.again) == ("bad_address", False)


def test_without_the_package_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "apprise", None)
    why = failed("slack://a/b/c")
    assert (why.reason.code, why.again) == ("apprise_not_installed", False)
