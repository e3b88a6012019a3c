"""Errors of the engine as those of the package: one `except` serves client and embedding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runyard.domain import errors as inner
from runyard.sdk import errors as public


@contextmanager
def public_errors() -> Iterator[None]:
    """Also a decorator."""
    try:
        yield
    except inner.RunyardError as error:
        if isinstance(error, inner.StartRefused):
            kind = public.BY_CODE.get(error.code, public.StartRefused)
            raise kind(error.message, code=error.code, params=error.params) from error
        problem = {"code": error.code, "message": error.message, "params": error.params}
        raise public.from_problem(error.status, problem) from error
