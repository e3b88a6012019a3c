"""Which tests one worker runs alone, because they share something large.

By path, for the scheduler sees no more of a test than its id. (pytest-xdist's own
`xdist_group` marks are lost on the way with the pytest we use: every worker got some tests of
each group, and started a cluster and two engines of its own.)
"""

from __future__ import annotations

import re

from xdist.scheduler import LoadGroupScheduling

_GROUPS = {
    "ray": re.compile(r"tests/integration/ray/"),
    "engines": re.compile(r"/test_(docker|podman|image)_|/test_in_container\."),
}


def group_of(test_id: str) -> str | None:
    """The group of a test, or None for one that any worker may run at any time."""
    return next((name for name, of in _GROUPS.items() if of.search(test_id)), None)


class ByGroup(LoadGroupScheduling):
    """The large groups first, each on one worker; the other tests one by one, wherever there is
    room."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or nodeid
