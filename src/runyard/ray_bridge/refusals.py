"""Why the bridge cannot work with a cluster: a stable code and what explains it."""

from __future__ import annotations

from typing import Any

UNREACHABLE = "ray_unreachable"  # params: address
NOT_INSTALLED = "ray_not_installed"  # params: python
TOO_OLD = "ray_too_old"  # params: found, least
VERSION_MISMATCH = "ray_version_mismatch"  # params: of bridge and cluster: ray, python
INSECURE = "ray_insecure"  # params: address
TOKEN_REFUSED = "ray_token_refused"  # params: address
NOT_A_MEMBER = "ray_not_a_member"  # params: address, why
FAILED = "ray_failed"  # params: why

LEAST_RAY = (2, 54)


class Refused(Exception):
    def __init__(self, code: str, **params: Any) -> None:
        super().__init__(f"{code} {params}")
        self.code = code
        self.params = params
