"""What cannot be killed on a node is named: when it is told, and at every look after a restart."""

from __future__ import annotations

import pytest

from runyard.executors.base import Launch, Sight, SliceLaunch
from runyard.executors.ray import RayExecutor, RayOptions
from runyard.executors.ray_spec import build
from runyard.ray_bridge.slices import Slice
from runyard.supervisor import journal

ATTEMPT = "job-stuck.1"


def frozen(pid: int) -> dict[str, object]:
    return {"pid": pid, "comm": "python", "state": "D", "wchan": "nfs_wait", "uid": 0}


@pytest.fixture
def folder(tmp_path):
    """An attempt of two slices that was handed over."""
    made = tmp_path / "attempts" / ATTEMPT
    made.mkdir(parents=True)
    parts = tuple(SliceLaunch(index, f"node{index}", ("true",), {}, ()) for index in range(2))
    launch = Launch(ATTEMPT, "job-stuck", 1 << 40, ("true",), {}, "/", slices=parts)
    journal.create(str(made), build(launch, str(made), by_grant=False))
    for index in range(2):
        own = made / "slices" / str(index)
        own.mkdir(parents=True)
        journal.create(str(own), {"tag": 1 << 40})
    return made


def test_a_look_names_what_is_stuck_on_any_of_its_nodes(tmp_path, folder):
    """R41: also by a server that has just started."""
    executor = RayExecutor(tmp_path, "owner", RayOptions(address="nowhere:1"))
    assert executor.inspect([ATTEMPT])[ATTEMPT].stuck == ()
    journal.append(str(folder / "slices" / "1"), "stuck", {"processes": [frozen(4711)]})
    journal.append(str(folder / "slices" / "0"), "job", {"pid": 5, "started_at": 1.0})
    seen = executor.inspect([ATTEMPT])[ATTEMPT]
    assert seen.sight is Sight.RUNNING
    assert [(one["pid"], one["where"]) for one in seen.stuck] == [(4711, "nfs_wait")]


class _Answers:
    """A cluster that answers with what an actor read."""

    def get(self, references, seconds):  # noqa: ARG002
        return references


def test_a_slice_tells_what_its_journal_says_is_stuck(folder, tmp_path):
    """Once for each time it changes, whoever wrote it there: a collector hears no supervisor."""
    one = Slice(ATTEMPT, str(folder), {"index": 0, "spec": {}})
    node = tmp_path / "node"
    node.mkdir()
    journal.create(str(node), {"tag": 1 << 40})

    def read() -> list[int]:
        data = (node / "journal").read_bytes()
        piece = ("journal", one.mirror.offsets["journal"], data[one.mirror.offsets["journal"] :])
        answer = {"pieces": [piece], "news": [], "over": False, "usage": None}
        news = one.take(_Answers(), answer, 1.0)
        return [process["pid"] for told in news for process in told["processes"]]

    (folder / "slices" / "0" / "journal").unlink()
    one.mirror.offsets["journal"] = 0
    assert read() == []
    journal.append(str(node), "stuck", {"processes": [frozen(7)]})
    assert read() == [7]
    journal.append(str(node), "log_hole", {"start": 0, "end": 0, "cut": True})
    assert read() == []
    journal.append(str(node), "stuck", {"processes": [frozen(7), frozen(8)]})
    assert read() == [7, 8]
