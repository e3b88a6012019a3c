"""Renewing a job's lease while this process lives."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from runyard.sdk import errors
from runyard.sdk.follower import View
from runyard.sdk.job import Job

if TYPE_CHECKING:
    from runyard.sdk.client import Client

FOR_SERVICES_S = 60.0  # the lease of a job that needs a service of its client
_AGAIN_S = 1.0
_SHORTEST_WAIT_S = 1.0
_WORRYING = 2  # renewals that failed in a row


class Lease:
    """Renews at a third of its length; quietly again and again while the server is away, which
    counts leases anew when it is back."""

    def __init__(self, client: Client, view: View, job: Job, length_s: float) -> None:
        self._client = client
        self._view = view
        self._job = job
        self._every_s = length_s / 3
        self._over = threading.Event()

    def keep(self) -> None:
        threading.Thread(target=self._renew, name="runyard-lease", daemon=True).start()

    def let_go(self) -> None:
        self._over.set()

    def _renew(self) -> None:
        failed, pause_s = 0, self._every_s
        while not self._over.wait(pause_s):
            try:
                self._client.renew(self._job.id, timeout=max(_SHORTEST_WAIT_S, self._every_s))
            except (errors.Conflict, errors.NotFound):
                return  # it has ended, or has no lease
            except errors.RunyardError:
                failed, pause_s = failed + 1, min(self._every_s, _AGAIN_S)
                if failed == _WORRYING and not self._over.is_set():
                    self._view.lease_failing(self._job, self._every_s * 3)
            else:
                failed, pause_s = 0, self._every_s
