"""Addresses are shown without what opens them."""

import pytest

from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import is_refused, shown_target, shown_url


@pytest.mark.parametrize(
    ("kind", "url", "shown"),
    [
        ("webhook", "https://ci.example/hooks/train", "https://ci.example/hooks/train"),
        ("webhook", "http://127.0.0.1:9000/hook", "http://127.0.0.1:9000/hook"),
        ("webhook", "https://ann:pw@ci.example:8443/x", "https://***@ci.example:8443/x"),
        ("webhook", "https://ann@ci.example/x", "https://***@ci.example/x"),
        ("webhook", "https://ci.example/x?access_token=abc#frag", "https://ci.example/x?***"),
        (
            "webhook",
            "https://hooks.slack.example/services/T00000000/B00/a1B2c3D4e5F6g7H8i9J0",
            "https://hooks.slack.example/services/T00000000/B00/***",
        ),
        ("feishu", "https://open.feishu.cn/open-apis/bot/v2/hook/short", None),
        ("feishu", "https://open.feishu.cn", "https://open.feishu.cn"),
        ("apprise", "slack://tokenA/tokenB/tokenC/#general", "slack://***"),
        ("apprise", "mailto://ann:pw@mail.example", "mailto://***"),
        ("webhook", "not an address", "***"),
    ],
)
def test_what_opens_an_address_is_hidden(kind, url, shown):
    assert shown_url(kind, url) == (shown or "https://open.feishu.cn/open-apis/bot/v2/hook/***")


def test_neither_answers_nor_the_log_hold_secrets():
    target = NotifyTarget("webhook", "https://a:hidden1@x.example/?k=hidden2", "hidden3")
    assert "hidden" not in repr(target) + str(shown_target(target))
    assert shown_target(target)["secret"] == "***"
    assert shown_target(NotifyTarget("webhook", "https://x.example/"))["secret"] is None


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "[fd00:ec2::254]", "::ffff:a9fe:a9fe", "fd00:ec2::254%eth0"]
)
def test_where_clouds_hand_out_credentials(address):
    assert is_refused(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.1.1", "example.org", ""])
def test_everything_else_is_the_operators_business(address):
    assert not is_refused(address)
