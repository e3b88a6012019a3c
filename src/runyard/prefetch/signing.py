"""Signature version 4 of requests to object stores, for requests without a body. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from runyard.prefetch import addresses

EMPTY_BODY = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Credentials:
    access_key: str
    secret_key: str
    session_token: str | None = None


def sign(
    method: str,
    url: str,
    headers: Mapping[str, str],
    credentials: Credentials,
    region: str,
    now: datetime,
) -> dict[str, str]:
    """The headers to send: those given, all of them signed, and the authorization."""
    time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    signed = {name.lower(): value.strip() for name, value in headers.items()}
    signed |= {"host": _host(url), "x-amz-date": time}
    signed["x-amz-content-sha256"] = EMPTY_BODY
    if credentials.session_token:
        signed["x-amz-security-token"] = credentials.session_token
    names = ";".join(sorted(signed))
    scope = f"{time[:8]}/{region}/s3/aws4_request"
    request = _canonical(method, url, signed, names)
    text = f"{_ALGORITHM}\n{time}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = _hmac(_key(credentials.secret_key, time[:8], region), text).hex()
    authorization = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    del signed["host"]  # the connection sends it
    return {**signed, "Authorization": authorization}


def encode(text: str, safe: str = "") -> str:
    """As signatures want it: everything but letters, digits and -._~"""
    return quote(text, safe=safe + "-._~")


def _host(url: str) -> str:
    """As http.client sends it: without a port that goes without saying."""
    scheme, host, port = addresses.origin(url)
    host = f"[{host}]" if ":" in host else host
    return host if port == addresses.DEFAULT_PORTS[scheme] else f"{host}:{port}"


def _canonical(method: str, url: str, signed: Mapping[str, str], names: str) -> str:
    parts = urlsplit(url)
    pairs = sorted(
        (encode(name), encode(value))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    query = "&".join(f"{name}={value}" for name, value in pairs)
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    body = signed["x-amz-content-sha256"]
    return f"{method}\n{parts.path or '/'}\n{query}\n{lines}\n{names}\n{body}"


def _key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
