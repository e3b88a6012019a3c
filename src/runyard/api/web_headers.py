"""What browsers are told about our pages: load nothing from elsewhere, be shown nowhere else."""

from __future__ import annotations

import re

from starlette.types import Scope

from runyard.api import session_cookie

_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src {connect}; frame-src 'none'; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'; object-src 'none'"
)
FOR_FILES = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}

# The page of the API has its style inside and needs nothing else.
FOR_DOCS = {
    **FOR_FILES,
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}


def for_page(scope: Scope) -> dict[str, str]:
    return {
        **FOR_FILES,
        "Content-Security-Policy": _POLICY.format(connect=_sockets(scope)),
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }


def _sockets(scope: Scope) -> str:
    """Some browsers do not take 'self' to mean sockets as well."""
    shown = session_cookie.header(scope, b"x-forwarded-host").partition(",")[0].strip()
    hosts = dict.fromkeys((shown, session_cookie.header(scope, b"host")))
    good = [host for host in hosts if _HOST.fullmatch(host)]
    return " ".join(["'self'", *(f"{kind}://{host}" for host in good for kind in ("ws", "wss"))])
