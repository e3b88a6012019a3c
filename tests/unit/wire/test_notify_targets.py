"""The `notify` of a job, and targets of the workspace, as they are asked for."""

import pytest

from runyard.domain import errors
from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import WorkspaceTarget
from runyard.wire import requests
from runyard.wire.jobs import read_job
from runyard.wire.notify_targets import NotificationRequest, merged

HOOK = {"type": "webhook", "url": "https://x.example/hook"}
KNOWN = WorkspaceTarget(
    3, "team", NotifyTarget("webhook", "https://a:pw@x.example/h", "key"), True, "anna", 1.0
)


def notify(*targets):
    return read_job({"command": "x", "notify": list(targets)}).to_submission().spec.notify


def problem(target):
    with pytest.raises(errors.InvalidJob) as caught:
        notify(target)
    assert "hidden" not in str(caught.value.params) + caught.value.message
    [found] = caught.value.params["fields"]
    return found


def test_a_target_has_defaults():
    """R38"""
    [found] = notify({"url": "https://x.example/hook"})
    assert found == NotifyTarget("webhook", "https://x.example/hook")
    assert found.events == ("completed", "failed", "cancelled")


def test_everything_can_be_said():
    [found] = notify(
        {**HOOK, "type": "Feishu", "secret": "k", "events": ["failed", "ALERT", "failed"]}
    )
    assert found == NotifyTarget("feishu", HOOK["url"], "k", ("failed", "alert"))
    [mail] = notify({"type": "apprise", "url": "mailto://ann:pw@mail.example"})
    assert mail.type == "apprise"


def test_a_job_that_tells_is_no_longer_warned_of():
    assert read_job({"command": "x", "notify": [HOOK]}).warnings() == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x.example/",
        "x.example/hook",
        "https://",
        "https:///hook",
        "https://x.example:99999/hidden",
        "https://x.example/a b",
        "https://x.example/\nhidden",
        "https://[::/hidden",
        "https://***@x.example/hidden",
        "http://169.254.169.254/hidden",
        "",
        "https://x.example/" + "hidden" * 400,
    ],
)
def test_an_address_that_can_never_be_sent_to_is_refused(url):
    assert problem({"url": url})["field"] == "notify[0].url"


@pytest.mark.parametrize("url", ["mail", "://hidden", "slack:/hidden", "1slack://hidden"])
def test_an_apprise_address_has_a_scheme(url):
    assert problem({"type": "apprise", "url": url})["field"] == "notify[0].url"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"type": "telegram"}, "type"),
        ({"events": ["started"]}, "events[0]"),
        ({"events": []}, "events"),
        ({"events": "failed"}, "events"),
        ({"secret": 7}, "secret"),
        ({"secret": "a\0hidden"}, "secret"),
        ({"secret": "hidden" * 100}, "secret"),
        ({"url": None}, "url"),
    ],
)
def test_what_does_not_fit_is_named(change, where):
    assert problem({**HOOK, **change})["field"] == f"notify[0].{where}"


def test_unknown_fields_are_refused_with_the_nearest_name():
    with pytest.raises(errors.UnknownField) as caught:
        notify({**HOOK, "secrets": "x"})
    assert caught.value.params["nearest"] == "secret"


def test_there_is_a_limit():
    with pytest.raises(errors.InvalidJob):
        notify(*[HOOK] * 21)


def test_a_change_keeps_what_it_leaves_out():
    read = requests.read(NotificationRequest, merged(KNOWN, {"events": ["alert"]})).to_new()
    assert read.where == NotifyTarget("webhook", KNOWN.where.url, "key", ("alert",))
    assert (read.name, read.enabled) == ("team", True)


def test_a_change_may_give_back_what_it_was_shown():
    shown = {"url": "https://***@x.example/h", "secret": "***", "enabled": False}
    read = requests.read(NotificationRequest, merged(KNOWN, shown)).to_new()
    assert read.where == KNOWN.where
    assert not read.enabled


def test_a_change_can_take_the_secret_away():
    read = requests.read(NotificationRequest, merged(KNOWN, {"secret": None})).to_new()
    assert read.where.secret is None


def test_another_masked_address_is_refused():
    with pytest.raises(errors.InvalidRequest):
        requests.read(NotificationRequest, merged(KNOWN, {"url": "https://***@y.example/"}))
