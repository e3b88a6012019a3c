"""A fake of the Feishu bot that checks what the real one checks."""

import base64
import hashlib
import hmac
import json

import pytest
from outbox_samples import START, delivery

from runyard.domain.job import NotifyTarget
from runyard.notify.base import Undelivered
from runyard.notify.feishu import FeishuSender

SECRET = "bot-secret"


@pytest.fixture
def bot(receiver):
    receiver.reply = b'{"code":0,"msg":"success","data":{}}'
    return receiver


def send(bot, lang="en", secret=SECRET):
    target = NotifyTarget("feishu", bot.url, secret)
    FeishuSender(lang).send(target, delivery(), START)


def test_the_bot_is_told_in_words_and_signed(bot):
    """R16, R38; the key is time and secret, and nothing is signed with it."""
    send(bot)
    [got] = bot.got
    key = f"{got.body['timestamp']}\n{SECRET}".encode()
    wanted = base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
    assert got.body["sign"] == wanted
    assert got.body["timestamp"] == str(int(START))
    assert got.body["msg_type"] == "text"
    text = got.body["content"]["text"]
    assert text.startswith("Job llama-7b failed\n")
    assert "Exit code: 3" in text
    assert SECRET not in got.raw.decode()


def test_it_speaks_chinese(bot):
    send(bot, "zh")
    assert bot.got[0].body["content"]["text"].startswith("任务 llama-7b 失败\n")


def test_without_a_secret_nothing_is_signed(bot):
    send(bot, secret=None)
    assert "sign" not in bot.got[0].body


@pytest.mark.parametrize(
    "reply",
    [
        {"code": 19021, "msg": "sign match fail or timestamp is not within one hour"},
        {"StatusCode": 9499, "StatusMessage": "Bad Request"},
        {},
        [],
    ],
)
def test_only_code_zero_means_that_it_arrived(bot, reply):
    bot.reply = json.dumps(reply).encode()
    with pytest.raises(Undelivered) as caught:
        send(bot)
    assert caught.value.reason.code == "service_refused"
    assert caught.value.again


def test_an_answer_that_is_no_json_is_no_success(bot):
    bot.reply = b"<html>"
    with pytest.raises(Undelivered):
        send(bot)


def test_the_older_answer_means_the_same(bot):
    bot.reply = b'{"StatusCode":0,"StatusMessage":"success"}'
    send(bot)


def test_a_failing_service_is_tried_again(bot):
    bot.answer = 502
    with pytest.raises(Undelivered) as caught:
        send(bot)
    assert caught.value.reason.params == {"status": 502}
