"""Where somebody wants to be told: in a job, and of a whole workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from runyard.domain import notifications, secrets
from runyard.domain.job import NotifyTarget
from runyard.domain.notifications import NewWorkspaceTarget, WorkspaceTarget
from runyard.wire import job_fields
from runyard.wire import job_types as types

MOST_TARGETS = 20
_LONGEST_URL = 2000
_LONGEST_SECRET = 500
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+")
_UNWANTED = re.compile(r"[\x00-\x20\x7f-\x9f]")

_Event = Annotated[Literal["completed", "failed", "cancelled", "repaired", "alert"], types.Lowered]


class JobNotify(BaseModel):
    """Somebody to be told."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[Literal["webhook", "apprise", "feishu"], types.Lowered] = "webhook"
    url: Annotated[str, Field(min_length=1, max_length=_LONGEST_URL)]
    secret: Annotated[str, Field(max_length=_LONGEST_SECRET)] | None = None
    events: Annotated[list[_Event], Field(min_length=1, max_length=20)] | None = None

    @field_validator("url")
    @classmethod
    def _can_be_sent_to(cls, url: str, info: ValidationInfo) -> str:
        _check_url(info.data.get("type", "webhook"), url)
        return url

    @field_validator("secret")
    @classmethod
    def _can_be_kept(cls, secret: str | None) -> str | None:
        if secret and _UNWANTED.search(secret):
            job_fields.refuse("bad_value", "must not hold spaces or control characters")
        return secret

    def to_target(self) -> NotifyTarget:
        if self.events is None:
            return NotifyTarget(self.type, self.url, self.secret or None)
        events = tuple(dict.fromkeys(self.events))
        return NotifyTarget(self.type, self.url, self.secret or None, events)


class NotificationTest(JobNotify):
    """A target to try without keeping it."""


class NotificationRequest(JobNotify):
    """A target of the workspace, told of everybody's jobs. In a change, what is left out stays."""

    name: types.ShortText
    enabled: bool = True

    def to_new(self) -> NewWorkspaceTarget:
        return NewWorkspaceTarget(self.name, self.to_target(), self.enabled)


BODIES = (NotificationRequest, NotificationTest)


def merged(known: WorkspaceTarget, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a change with what it left out, or gives back masked as it was shown."""
    where = known.where
    shown = notifications.shown_target(where)
    kept = {
        "type": where.type,
        "url": where.url,
        "secret": where.secret,
        "events": list(where.events),
        "name": known.name,
        "enabled": known.enabled,
    }
    given = {
        name: value
        for name, value in body.items()
        if not (name in ("url", "secret") and value == shown[name])
    }
    return {**kept, **given}


def _check_url(kind: str, url: str) -> None:
    """The words never repeat the address: it may be a secret."""
    if secrets.MASK in url:
        job_fields.refuse("bad_value", "is masked: give the whole address")
    if _UNWANTED.search(url):
        job_fields.refuse("bad_value", "must not hold spaces or control characters")
    if kind == "apprise":
        if not _ANY_SCHEME.fullmatch(url):
            job_fields.refuse("bad_value", "must be an apprise address such as slack://...")
    elif not url.lower().startswith(("http://", "https://")) or not _host(url):
        job_fields.refuse("bad_value", "must be an http or https address")
    if notifications.is_refused(_host(url)):
        job_fields.refuse("address_refused", "is an address that hands out credentials")


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # one out of range is found here
        return parts.hostname or ""
    except ValueError:
        return ""
