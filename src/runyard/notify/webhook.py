"""Webhooks: the whole notification as JSON, signed so that the receiver can trust it."""

from __future__ import annotations

import base64
import hashlib
import hmac
from urllib.parse import unquote, urlsplit, urlunsplit

import orjson

from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import Delivery
from runyard.notify import http_post
from runyard.notify.base import TIMEOUT_S


class WebhookSender:
    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s

    def send(self, target: NotifyTarget, delivery: Delivery, now: float) -> None:
        body = orjson.dumps(delivery.body)
        headers = {
            "Content-Type": "application/json",
            "X-Runyard-Delivery": delivery.delivery_id,
            "X-Runyard-Event": delivery.event,
            "X-Runyard-Timestamp": str(int(now)),
        }
        if target.secret:
            headers["X-Runyard-Signature"] = signature(target.secret, int(now), body)
        url, login = _without_login(target.url)
        if login:
            headers["Authorization"] = login
        http_post.succeed(http_post.post(url, body, headers, self._timeout_s))


def signature(secret: str, at: int, body: bytes) -> str:
    """`t=<unix>,v1=<hex>`: HMAC-SHA256 of the time, a dot, and the body as it was sent."""
    signed = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256)
    return f"t={at},v1={signed.hexdigest()}"


def _without_login(url: str) -> tuple[str, str]:
    """The address without `user:password@`, and the header that says the same."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""  # whoever posts will say so
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, ""
    basic = base64.b64encode(unquote(login).encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), f"Basic {basic}"
