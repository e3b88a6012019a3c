"""Telling people outside: whom, of what, when to try again, and how addresses are shown."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runyard.domain import secrets
from runyard.domain.job import NotifyTarget
from runyard.domain.reasons import Reason

ALERT = "alert"
REPAIRED = "repaired"
TEST = "test"
EVENTS = ("completed", "failed", "cancelled", REPAIRED, ALERT)  # that one can ask to be told of
TRIED_FOR_S = 24 * 3600.0  # then a delivery is given up

# Why a delivery did not arrive
HTTP_STATUS = "http_status"  # params: status
UNREACHABLE = "unreachable"  # params: why
NO_ANSWER = "no_answer"  # params: seconds
REDIRECTED = "redirected"  # params: status
BAD_CERTIFICATE = "bad_certificate"  # params: why
ADDRESS_REFUSED = "address_refused"  # it leads to a service that hands out credentials
SERVICE_REFUSED = "service_refused"  # params: code, said
APPRISE_NOT_INSTALLED = "apprise_not_installed"
APPRISE_FAILED = "apprise_failed"  # params: service
BAD_ADDRESS = "bad_address"
TARGET_REMOVED = "target_removed"  # params: name
SENDER_FAILED = "sender_failed"  # params: kind: a fault of ours


class DeliveryStatus(StrEnum):
    WAITING = "waiting"
    SENDING = "sending"  # a server has claimed it until `due_at`
    SENT = "sent"
    GIVEN_UP = "given_up"


UNFINISHED = frozenset({DeliveryStatus.WAITING, DeliveryStatus.SENDING})


@dataclass(frozen=True, slots=True)
class NewWorkspaceTarget:
    """Told of the jobs of everybody."""

    name: str
    where: NotifyTarget
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class WorkspaceTarget:
    id: int
    name: str
    where: NotifyTarget
    enabled: bool
    created_by: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom a delivery goes to: a job's own target, or a workspace's by its number, so that a
    corrected address also helps what still waits."""

    type: str
    name: str = ""
    workspace_target: int | None = None
    url: str = field(default="", repr=False)
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class NewDelivery:
    delivery_id: str  # the same for every repeat
    event: str
    job_id: int | None
    recipient: Recipient
    body: Mapping[str, Any]
    created_at: float  # also when it is due first


@dataclass(frozen=True, slots=True)
class Delivery:
    id: int
    delivery_id: str
    event: str
    job_id: int | None
    job_ref: str | None
    recipient: Recipient
    body: Mapping[str, Any]
    status: DeliveryStatus
    tries: int  # those that were begun
    due_at: float
    claimed_by: str | None
    created_at: float
    sent_at: float | None
    last_error: Reason | None


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Empty fields match everything."""

    statuses: tuple[DeliveryStatus, ...] = ()
    events: tuple[str, ...] = ()
    job_id: int | None = None
    owner: str | None = None  # of the job


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    deliveries: tuple[Delivery, ...]  # newest first
    next_cursor: str | None
    total: int


def next_try(
    created_at: float, tries: int, delays: Sequence[float], now: float, wished_s: float = 0.0
) -> float | None:
    """When to try again after so many tries; the last delay repeats. None: give it up. `wished_s`
    is how long the receiver asked us to wait."""
    delay = max(delays[min(tries, len(delays)) - 1], wished_s)
    if now + delay > created_at + TRIED_FOR_S:
        return None
    return now + delay


_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")
)


def is_refused(address: str) -> bool:
    """Whether an IP address is one where clouds hand out a machine's credentials."""
    try:
        found = ipaddress.ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found) in _METADATA


_ADDRESS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#@]*@)?(?P<host>[^/?#@]*)(?P<path>[^?#]*)"
)
_TOKEN = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[A-Za-z0-9_~.=-]{16,}")


def shown_url(kind: str, url: str) -> str:
    """An address for answers and logs, without what opens it: logins, queries, and parts of the
    path that are keys. Of an apprise address, which is mostly key, only the service is shown."""
    found = _ADDRESS.match(url)
    if found is None:
        return secrets.MASK
    if kind == "apprise":
        return f"{found['scheme']}://{secrets.MASK}"
    login = f"{secrets.MASK}@" if "@" in url[: found.start("host")] else ""
    parts = found["path"].split("/")
    if kind == "feishu":
        parts[1:] = [*parts[1:-1], secrets.MASK] if len(parts) > 1 else []
    path = "/".join(secrets.MASK if _TOKEN.fullmatch(part) else part for part in parts)
    query = f"?{secrets.MASK}" if "?" in url else ""
    return f"{found['scheme']}://{login}{found['host']}{path}{query}"


def shown_target(target: NotifyTarget) -> dict[str, Any]:
    return {
        "type": target.type,
        "url": shown_url(target.type, target.url),
        "secret": secrets.MASK if target.secret else None,
        "events": list(target.events),
    }
