"""Running things as somebody without rights: a throwaway unix user when the tests run as root."""

from __future__ import annotations

import os

import pytest

from throwaway_user import NobodyToBe, somebody


@pytest.fixture(scope="session")
def person():
    """A throwaway user for the session; the person who runs the tests, unless that is root."""
    try:
        with somebody() as made:
            yield made
    except NobodyToBe as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
