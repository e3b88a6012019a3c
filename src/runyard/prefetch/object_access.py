"""Who we are for an object store, and where it is: environment first, then the shared files."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from dataclasses import dataclass

from runyard.prefetch.signing import Credentials

DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True)
class Access:
    """Without credentials requests are not signed, which public buckets allow."""

    endpoint: str | None
    region: str
    credentials: Credentials | None

    def base(self, region: str) -> str:
        return self.endpoint or f"https://s3.{region}.amazonaws.com"


def from_environment(environment: Mapping[str, str]) -> Access:
    profile = environment.get("AWS_PROFILE") or "default"
    home = environment.get("HOME", "")
    keys = _section(
        environment.get("AWS_SHARED_CREDENTIALS_FILE") or f"{home}/.aws/credentials", profile
    )
    name = profile if profile == "default" else f"profile {profile}"
    config = _section(environment.get("AWS_CONFIG_FILE") or f"{home}/.aws/config", name)
    endpoint = (
        environment.get("AWS_ENDPOINT_URL_S3")
        or environment.get("AWS_ENDPOINT_URL")
        or config.get("endpoint_url")
    )
    region = (
        environment.get("AWS_REGION")
        or environment.get("AWS_DEFAULT_REGION")
        or config.get("region")
        or DEFAULT_REGION
    )
    return Access(endpoint.rstrip("/") if endpoint else None, region, _keys(environment, keys))


def _keys(environment: Mapping[str, str], section: Mapping[str, str]) -> Credentials | None:
    if environment.get("AWS_ACCESS_KEY_ID") and environment.get("AWS_SECRET_ACCESS_KEY"):
        return Credentials(
            environment["AWS_ACCESS_KEY_ID"],
            environment["AWS_SECRET_ACCESS_KEY"],
            environment.get("AWS_SESSION_TOKEN"),
        )
    if section.get("aws_access_key_id") and section.get("aws_secret_access_key"):
        return Credentials(
            section["aws_access_key_id"],
            section["aws_secret_access_key"],
            section.get("aws_session_token"),
        )
    return None


def _section(path: str, name: str) -> Mapping[str, str]:
    parser = configparser.RawConfigParser()
    try:
        if os.path.isfile(path):
            parser.read(path, encoding="utf-8")
    except (OSError, ValueError, configparser.Error):
        return {}
    return dict(parser[name]) if parser.has_section(name) else {}
