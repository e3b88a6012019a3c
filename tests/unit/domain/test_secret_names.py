"""Which variables look secret, and what is shown of them."""

from __future__ import annotations

import pytest

from runyard.domain import secrets


@pytest.mark.parametrize(
    "name",
    [
        "WANDB_API_KEY",
        "HF_TOKEN",
        "HFTOKEN",
        "hfToken",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "DB_PASSWORD",
        "dbpassword",
        "PGPASSWORD",
        "MYSQL_PWD",
        "DB_PASS",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "OPENAI_APIKEY",
        "GITHUB_PAT",
        "SENTRY_DSN",
        "AUTH_HEADER",
        "API_TOKENS",
        "SECRET",
        "key",
        "authorization",
        "SSH_PRIVATE_KEY",
        "clientSecret",
    ],
)
def test_secret(name):
    assert secrets.looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "MONKEY",
        "KEYBOARD",
        "KEYBOARD_LAYOUT",
        "TOKENIZERS_PARALLELISM",
        "MAX_TOKENS",
        "MAX_NEW_TOKENS",
        "TOKENS_PER_STEP",
        "PAD_TOKEN",
        "EOS_TOKEN_ID",
        "TOKEN_LIMIT",
        "SORT_KEYS",
        "PUBLIC_KEY",
        "KEY_SIZE",
        "SSH_AUTH_SOCK",
        "GIT_AUTHOR_NAME",
        "PWD",
        "OLDPWD",
        "OLD_PWD",
        "PATH",
        "PYTHONPATH",
        "PASS",
        "SINGLE_PASS",
        "PASS_RATE",
        "SECRETARY",
        "LANG",
        "OMP_NUM_THREADS",
        "",
    ],
)
def test_not_secret(name):
    assert not secrets.looks_secret(name)


def test_masking():
    shown = secrets.mask(
        {
            "HF_TOKEN": "hf_abc",
            "EMPTY_TOKEN": "",
            "NO_TOKEN": None,
            "LR": "0.1",
            "COUNT": 3,
            "DATABASE_URL": "postgresql://ann:hunter2@db:5432/x",
            "PROXY": "http://proxy:3128",
        }
    )
    assert shown == {
        "HF_TOKEN": "***",
        "EMPTY_TOKEN": "",
        "NO_TOKEN": None,
        "LR": "0.1",
        "COUNT": 3,
        "DATABASE_URL": "postgresql://ann:***@db:5432/x",
        "PROXY": "http://proxy:3128",
    }


def test_passwords_in_addresses():
    text = "curl abcdef http://u:pw@h/ ssh://h:22/ no/address:here@all"
    shown = "curl abcdef http://u:***@h/ ssh://h:22/ no/address:here@all"
    assert secrets.hide_in_urls(text) == shown
