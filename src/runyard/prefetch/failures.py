"""How fetching can go wrong: for good (Failure) or for now (Trouble).

Neither may ever carry a credential: addresses are masked before they come here.
"""

from __future__ import annotations

import errno
from typing import Any

from runyard.prefetch.plan import Outcome


class Failure(Exception):
    """The end of the program: a code of `plan.EXIT_STATUS`, whose address, and parameters."""

    def __init__(self, code: str, uri: str | None = None, **params: Any) -> None:
        super().__init__(code, uri, params)
        self.code, self.uri, self.params = code, uri, params

    def about(self, uri: str) -> Failure:
        """The same, naming the address if none was named yet."""
        if self.uri is None:
            self.uri = uri
        return self

    def outcome(self) -> Outcome:
        return {"code": self.code, "uri": self.uri, "params": self.params}


class Trouble(Exception):
    """Something that may be better a moment later."""

    def __init__(self, reason: str, wait_s: float | None = None, **params: Any) -> None:
        super().__init__(reason, params)
        self.reason, self.wait_s, self.params = reason, wait_s, params


def of_storage(error: OSError) -> Failure:
    """What an error of our own disk means."""
    code = "disk_full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "storage"
    return Failure(code, None, error=error.strerror or type(error).__name__, path=error.filename)
