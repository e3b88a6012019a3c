"""Proofs that a process belongs to an attempt; without one of them it is not touched.

The tag (a resource limit), the recorded identity of main or a service, or the environment marker
together with same user and a start not before the job's. A name or a number is no proof.
"""

from __future__ import annotations

import os
import signal

from runyard.supervisor import identity, journal, process_table, protocol

_SMALLEST_TAG = 1 << 32  # below it is a limit that somebody set for everybody


class Claim:
    """What is known about the processes of one attempt, on this boot and in this pid namespace.

    `start_ticks` is when the first of them can have started."""

    __slots__ = ("identities", "marker", "start_ticks", "tag")

    def __init__(self, attempt_id: str, tag: int, start_ticks: int) -> None:
        self.tag = tag
        self.marker = f"{protocol.MARKER}={attempt_id}".encode()
        self.start_ticks = start_ticks
        self.identities: dict[tuple[int, int], int | None] = {}


def recorded(attempt_id: str, record: journal.Journal) -> Claim:
    """As the attempt's journal tells it."""
    assert record.spec is not None
    assert record.first_process is not None
    claim = Claim(attempt_id, record.spec["tag"], record.first_process["start_ticks"])
    claim.identities = {
        (process["pid"], process["start_ticks"]): process.get("pidfd_ino")
        for process in record.records
        if process["kind"] in ("service", "job")
    }
    return claim


class Claims:
    """The claims of several attempts, answered in one look at each process."""

    def __init__(self, claims: dict[str, Claim]) -> None:
        self._by_tag = {claim.tag: name for name, claim in claims.items()}
        self._by_identity = {
            known: (name, inode)
            for name, claim in claims.items()
            for known, inode in claim.identities.items()
        }
        self._by_marker = {claim.marker: name for name, claim in claims.items()}
        self._ticks = {name: claim.start_ticks for name, claim in claims.items()}
        self._first = min(self._ticks.values(), default=0)

    def owner(self, pid: int) -> str | None:
        """The attempt a living process belongs to."""
        stat = identity.stat_fields(pid)
        if stat is None or stat[0] in (b"Z", b"X", b"x"):
            return None
        tag = process_table.tag(pid)
        if tag is not None and tag in self._by_tag:
            return self._by_tag[tag]
        if tag is not None and tag >= _SMALLEST_TAG:
            return None  # it is another attempt's, whatever its environment says
        ticks = int(stat[19])
        known, inode = self._by_identity.get((pid, ticks), (None, None))
        # A pid can be used again within one tick; the inode of its pidfd cannot.
        if known is not None and inode in (None, identity.pidfd_inode(pid)):
            return known
        if ticks < self._first or not _ours(pid):
            return None
        environment = process_table.read(f"/proc/{pid}/environ") or b""
        for line in environment.split(b"\0"):
            name = self._by_marker.get(line)
            if name is not None and ticks >= self._ticks[name]:
                return name
        return None

    def living(self) -> dict[int, str]:
        """Every process that belongs to one of the attempts."""
        spared = process_table.ancestors_and_self()
        found = {}
        for pid in process_table.pids():
            name = None if pid in spared else self.owner(pid)
            if name is not None:
                found[pid] = name
        return found

    def kill(self, pid: int, name: str) -> None:
        """Hold it by a pidfd, prove again that it belongs, then kill exactly that process."""
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            return
        try:
            if self.owner(pid) == name:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        except OSError:
            pass  # it just died, or belongs to another user now: the next look tells
        finally:
            os.close(pidfd)


def _ours(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.getuid()
    except OSError:
        return False
