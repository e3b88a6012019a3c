"""Feishu and Lark: the bot of a group says it in words, signed as the service wants it."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import orjson

from runyard.domain import notifications
from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import Delivery
from runyard.notify import http_post, texts
from runyard.notify.base import TIMEOUT_S, Undelivered

_MOST_SAID = 200


class FeishuSender:
    def __init__(self, lang: str, timeout_s: float = TIMEOUT_S) -> None:
        self._lang = lang
        self._timeout_s = timeout_s

    def send(self, target: NotifyTarget, delivery: Delivery, now: float) -> None:
        said = texts.of(delivery, self._lang)
        message: dict[str, Any] = {
            "msg_type": "text",
            "content": {"text": f"{said.title}\n{said.body}"},
        }
        if target.secret:
            message = {
                "timestamp": str(int(now)),
                "sign": sign(target.secret, int(now)),
                **message,
            }
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "X-Runyard-Delivery": delivery.delivery_id,
        }
        answer = http_post.post(target.url, orjson.dumps(message), headers, self._timeout_s)
        http_post.succeed(answer)
        _accepted(answer.body)


def sign(secret: str, at: int) -> str:
    """The service takes time and secret as the key, and signs nothing at all with it."""
    key = f"{at}\n{secret}".encode()
    return base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()


def _accepted(body: bytes) -> None:
    """It answers 200 also when it refuses; only code 0 means that the message is there."""
    try:
        told = orjson.loads(body)
        code = told.get("code", told.get("StatusCode"))
        said = str(told.get("msg", told.get("StatusMessage", "")))[:_MOST_SAID]
    except (orjson.JSONDecodeError, AttributeError):
        raise Undelivered(notifications.SERVICE_REFUSED, code=None, said="") from None
    if code != 0:
        raise Undelivered(notifications.SERVICE_REFUSED, code=code, said=said)
