"""Parts of the ray-bridge that need no Ray: names, copies, ends of gangs, deadlines."""

from __future__ import annotations

import os
import threading
import time

import pytest

from runyard.executors import ray_nodes, ray_spec
from runyard.executors.base import Launch, SliceLaunch
from runyard.ray_bridge import gang_end, names, supervisor_archive
from runyard.ray_bridge.deadlines import Deadlines, Late
from runyard.ray_bridge.gone_nodes import GoneNodes
from runyard.ray_bridge.mirror import Mirror
from runyard.ray_bridge.nodes import Nodes
from runyard.ray_bridge.slice_actor import _moved
from runyard.ray_bridge.slice_files import SliceFiles
from runyard.supervisor import journal
from runyard.supervisor.gang_rule import RankEnd


def test_names_are_exact():
    assert names.group_name("job-1.2") == "job_job-1_a2"
    assert names.actor_name("job-1.2", 3) == "job_job-1_a2_n3"
    assert names.attempt_of_actor("job_job-1_a2_n3") == "job-1.2"
    assert names.attempt_of_group("job_job-1_a2") == "job-1.2"
    assert names.attempt_of_actor("job_job-1_a2") is None
    assert names.attempt_of_group("other") is None
    assert names.attempt_of_group("job_job-1_a2_n3") is None


def test_the_archive_is_the_same_for_the_same_files():
    assert supervisor_archive.make() == supervisor_archive.make()


def test_a_copy_goes_on_where_an_earlier_one_stopped(tmp_path):
    first = Mirror(str(tmp_path), 0)
    first.take([("out.log", 0, b"one\n"), ("journal", 0, b"x")])
    again = Mirror(str(tmp_path), 0)
    assert again.offsets == {"out.log": 4, "journal": 1}
    again.take([("out.log", 4, b"two\n")])
    assert (tmp_path / "out.log").read_bytes() == b"one\ntwo\n"


def test_the_log_of_a_launcher_is_that_of_the_first_rank_of_its_node(tmp_path):
    """R30: where the logs of ranks are looked for; also when it is gone on with."""
    Mirror(str(tmp_path), 0).take([("out.log", 0, b"zero\n")])
    Mirror(str(tmp_path), 1, log_rank=2).take([("out.log", 0, b"two\n"), ("journal", 0, b"x")])
    again = Mirror(str(tmp_path), 1, log_rank=2)
    assert again.offsets["out.log"] == 4
    again.take([("out.log", 4, b"and more\n")])
    assert (tmp_path / "out.log").read_bytes() == b"zero\n"
    assert (tmp_path / "rank-2.log").read_bytes() == b"two\nand more\n"


def test_a_file_that_became_shorter_is_copied_anew(tmp_path):
    mirror = Mirror(str(tmp_path), 0)
    mirror.take([("metrics.jsonl", 0, b"long line\n")])
    mirror.take([("metrics.jsonl", -1, b"")])
    assert mirror.offsets["metrics.jsonl"] == 0
    mirror.take([("metrics.jsonl", 0, b"new\n")])
    assert (tmp_path / "metrics.jsonl").read_bytes() == b"new\n"


@pytest.mark.parametrize("name", ["../evil.log", "/etc/passwd", "stop", "a/b.log", "server.id"])
def test_only_known_names_are_written(tmp_path, name):
    """A node may be anybody's: what it calls its files does not lead out of the folder."""
    folder = tmp_path / "attempt"
    folder.mkdir()
    Mirror(str(folder), 0).take([(name, 0, b"data")])
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_text("mine")
    folder = tmp_path / "attempt"
    folder.mkdir()
    os.symlink(target, folder / "out.log")
    with pytest.raises(OSError, match="symbolic"):
        Mirror(str(folder), 0).take([("out.log", 0, b"data")])
    assert target.read_text() == "mine"


def test_holes_are_given_back_in_the_copy_too(tmp_path):
    mirror = Mirror(str(tmp_path), 0)
    data = b"x" * 4095 + b"\n"
    mirror.take([("out.log", 0, data * 64)])
    before = os.stat(tmp_path / "out.log").st_blocks
    hole = journal.encode(journal.new_record("log_hole", {"start": 4096, "end": 32 * 4096}))
    mirror.take([("journal", 0, hole)])
    now = os.stat(tmp_path / "out.log")
    assert now.st_size == 64 * 4096
    assert now.st_blocks < before


def test_paths_of_the_run_dir_are_those_of_the_node():
    spec = {"env": {"A": "/srv/run/x", "B": "/srv/runs"}, "argv": ["/srv/run"], "n": 1}
    moved = _moved(spec, "/srv/run", "/node")
    assert moved == {"env": {"A": "/node/x", "B": "/srv/runs"}, "argv": ["/node"], "n": 1}


class _ThreeNodes:
    """What a cluster says of its nodes."""

    def __init__(self):
        self.gone = GoneNodes()

    def nodes(self):
        return [
            {
                "NodeID": f"id-{one}",
                "NodeName": one,
                "Alive": one != "c",
                "Resources": {"CPU": 1.0},
                "NodeManagerAddress": one,
                "NodeManagerHostname": one,
            }
            for one in "abc"
        ]


def test_a_node_whose_ray_is_dead_is_left_out_before_the_cluster_knows():
    """R51: at once, and by every look until the cluster calls it dead."""
    cluster, heard = _ThreeNodes(), []
    nodes = Nodes(cluster)
    nodes._asked |= {"id-a", "id-b"}  # what they say themselves needs Ray
    cluster.gone.heard = lambda: (nodes.leave_out_gone(), heard.append(dict(nodes.ids)))
    nodes.refresh()
    assert set(nodes.ids) == {"a", "b"}
    cluster.gone.add("id-a")
    cluster.gone.add("id-a")
    assert heard == [{"b": "id-b"}]
    assert [row["name"] for row in nodes.rows] == ["b"]
    nodes.refresh()
    assert set(nodes.ids) == {"b"}


def test_late_calls_are_counted():
    deadlines = Deadlines()
    blocked = threading.Event()
    for _ in range(2):
        assert deadlines.unreachable_since is None
        with pytest.raises(Late):
            deadlines.call(blocked.wait, 0.05)
    assert deadlines.unreachable_since is not None
    assert deadlines.call(lambda: 5) == 5
    assert deadlines.unreachable_since is None
    blocked.set()


def test_a_failed_call_is_no_late_one():
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Deadlines().call(fail)


class _Slice:
    def __init__(self, index, exit_record, ends):
        self.index, self.exit, self.ends = index, exit_record, ends


def _exit(code, signal=None, stop=None, **more):
    base = {"code": code, "signal": signal, "cause": "exited", "ended_at": 5.0, "stop": stop}
    return {**base, "processes_ended": 1, **more}


def test_the_first_failing_rank_of_all_slices_decides():
    slices = [
        _Slice(0, _exit(1, ranks=[{"rank": 0}], rank=0), [RankEnd(0, 1, None, 10.2)]),
        _Slice(1, _exit(None, 9, ranks=[{"rank": 1}], rank=1), [RankEnd(1, None, 9, 10.4)]),
    ]
    end = gang_end.merged(slices, "")
    assert (end["signal"], end["rank"]) == (9, 1)  # the other failed because it was gone
    assert [rank["rank"] for rank in end["ranks"]] == [0, 1]
    assert end["processes_ended"] == 2


def test_the_receipt_of_a_gang_is_that_of_all_its_slices():
    """R2: no better proven than the worst of them, and as slow as the slowest."""
    term, kill = {"signal": "TERM", "at": 1.0}, {"signal": "KILL", "at": 2.0}
    more = {"temp_removed": True, "proof": "echild", "seconds": 0.5, "signals": [kill]}
    held = [{"pid": 4711}]
    slices = [
        _Slice(0, _exit(0, **more), [RankEnd(0, 0, None, 1.0)]),
        _Slice(
            1,
            _exit(
                0, **{**more, "proof": "scan", "seconds": 3.0, "signals": [term]}, was_stuck=held
            ),
            [RankEnd(1, 0, None, 1.0)],
        ),
    ]
    end = gang_end.merged(slices, "")
    assert (end["proof"], end["seconds"], end["temp_removed"]) == ("scan", 3.0, True)
    assert (end["signals"], end["was_stuck"]) == ([term, kill], held)
    slices[0].exit = {**slices[0].exit, "proof": "node_gone", "temp_removed": None}
    end = gang_end.merged(slices, "")
    assert (end["proof"], end["temp_removed"]) == ("node_gone", False)


def test_a_node_that_ran_nothing_has_nothing_to_prove():
    ran = {"temp_removed": True, "proof": "echild"}
    slices = [
        _Slice(0, _exit(0, **ran), [RankEnd(0, 0, None, 1.0)]),
        _Slice(1, _exit(None, proof="absent"), [RankEnd(-1, None, None, 1.0)]),
    ]
    end = gang_end.merged(slices, "")
    assert (end["proof"], end["temp_removed"]) == ("echild", True)


def test_who_was_told_to_end_did_not_fail():
    told = {"cause": "rank_failed"}
    slices = [
        _Slice(0, _exit(None, 15, told), [RankEnd(0, None, 15, 10.0)]),
        _Slice(1, _exit(3), [RankEnd(1, 3, None, 10.1)]),
    ]
    assert gang_end.merged(slices, "rank_failed")["code"] == 3


def test_a_slice_that_lost_its_actor_decides():
    lost = {**_exit(None, 9, {"cause": "lifeline"}), "cause": "supervisor_lost"}
    stopped = {**_exit(None, 15, {"cause": "rank_failed"}), "cause": "cancelled"}
    slices = [
        _Slice(0, stopped, [RankEnd(0, None, 15, 11.5)]),
        _Slice(1, lost, [RankEnd(1, None, 9, 10.0)]),
    ]
    assert gang_end.merged(slices, "rank_failed")["cause"] == "supervisor_lost"


def test_a_peer_that_failed_before_the_loss_of_a_node_was_known_does_not_decide():
    """R50: it only lost its peer. A slice whose program had failed is not excused by its node."""
    lost = {**_exit(None), "cause": "supervisor_lost"}
    slices = [
        _Slice(0, _exit(1), [RankEnd(0, 1, None, 10.0)]),
        _Slice(1, lost, [RankEnd(-1, None, None, 14.0)]),
    ]
    assert gang_end.merged(slices, "rank_failed")["cause"] == "supervisor_lost"
    slices[1].exit = {**lost, "code": 3}
    assert gang_end.merged(slices, "rank_failed")["code"] == 1


def test_what_lags_behind_is_named():
    slices = [
        _Slice(0, _exit(0), [RankEnd(0, 0, None, 1.0)]),
        _Slice(
            1,
            {**_exit(None, 15, {"cause": "rank_lagged"}), "cause": "rank_lagged"},
            [RankEnd(1, None, 15, 9.0)],
        ),
    ]
    assert gang_end.merged(slices, "rank_lagged")["cause"] == "rank_lagged"


def test_the_spec_of_a_gang_names_node_and_gpus(tmp_path):
    parts = tuple(
        SliceLaunch(index, f"node-{index}", ("true",), {}, (), (f"node-{index}/{index + 2}",))
        for index in range(2)
    )
    launch = Launch("job-1.1", "job-1", 7, ("true",), {}, "/", cpu_milli=500, gpu_milli=1000)
    spec = ray_spec.build(_with(launch, parts), str(tmp_path), by_grant=True)
    assert [(one["node"], one["gpu_ids"]) for one in spec["slices"]] == [
        ("node-0", ["2"]),
        ("node-1", ["3"]),
    ]
    assert (spec["cpus_each"], spec["gpus_each"], spec["gpus_by"]) == (0.5, 1.0, "grant")


def _with(launch, parts):
    from dataclasses import replace

    return replace(launch, slices=parts)


def test_use_that_was_not_measured_anew_is_the_same():
    row = {"at": 5.0, "cpu_s": 1.0, "rss_mb": 2.0, "pids": [("elsewhere", 7)]}
    first = ray_nodes.usages({"a": row}, {})
    time.sleep(0.01)
    assert ray_nodes.usages({"a": row}, first) == first
    assert first["a"].usage.pids == (-7,)


def test_an_actor_reads_around_holes(tmp_path):
    """What the node gave back before it was read is left out, and the place of the rest kept."""
    with open(tmp_path / "out.log", "wb") as file:
        file.truncate(8 * 4096)
        file.seek(4 * 4096)
        file.write(b"y" * 4096)
    [(name, offset, data)] = SliceFiles(str(tmp_path)).pieces({"out.log": 10})
    assert name == "out.log"
    assert offset >= 10
    assert data
    assert offset + len(data) <= 8 * 4096
