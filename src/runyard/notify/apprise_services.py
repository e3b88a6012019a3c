"""Mail, Slack, DingTalk, WeCom, Telegram and the many others that the apprise package knows."""

from __future__ import annotations

import logging
from typing import Any

from runyard.domain import notifications
from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import Delivery
from runyard.notify import texts
from runyard.notify.base import Undelivered


class AppriseSender:
    def __init__(self, lang: str) -> None:
        self._lang = lang

    def send(self, target: NotifyTarget, delivery: Delivery, now: float) -> None:  # noqa: ARG002
        apprise = _apprise()
        service = target.url.partition(":")[0].lower()
        told = apprise.Apprise()
        if not told.add(target.url):
            raise Undelivered(notifications.BAD_ADDRESS, again=False, service=service)
        said = texts.of(delivery, self._lang)
        kind = getattr(apprise.NotifyType, _KINDS.get(said.level, "INFO"))
        if not told.notify(body=said.body, title=said.title, notify_type=kind):
            raise Undelivered(notifications.APPRISE_FAILED, service=service)


_KINDS = {"good": "SUCCESS", "bad": "FAILURE", "warning": "WARNING"}


def _apprise() -> Any:
    """Imported when first needed: it is optional, and knows 170 services."""
    try:
        import apprise
    except ImportError:
        raise Undelivered(notifications.APPRISE_NOT_INSTALLED, again=False) from None
    # Its own lines can hold addresses with their keys.
    log = logging.getLogger("apprise")
    log.propagate = False
    log.setLevel(logging.CRITICAL + 1)
    return apprise
