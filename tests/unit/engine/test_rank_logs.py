"""Which rank's log tells why a distributed attempt failed."""

import pytest

from runyard.domain.distributed import Distributed
from runyard.domain.failures.evidence import Evidence, RankLog, lines_of
from runyard.engine.recover import rank_logs
from runyard.executors.base import End

LOST_PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:1"
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB."


def trace(line):
    return f'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n{line}'


def evidence(*texts, rank=None, code=1, **fields):
    logs = tuple(RankLog(n, (), lines_of(text), 10.0 + n) for n, text in enumerate(texts))
    detail = {} if rank is None else {"rank": rank}
    return Evidence(exit_code=code, detail=detail, logs=logs, world_size=len(texts), **fields)


def test_the_log_of_the_first_failing_rank_decides():
    """R30: though another rank's end is told first in the list."""
    found = rank_logs.classified(evidence(trace(LOST_PEER), trace(OUT_OF_MEMORY), rank=1))
    assert (found.category, found.root.rank, found.facts["rank"]) == ("gpu_oom", 1, 1)
    assert found.explanation.params["rank"] == 1


def test_a_rank_that_only_lost_its_peer_is_not_the_root():
    found = rank_logs.classified(evidence(trace(LOST_PEER), trace(OUT_OF_MEMORY), rank=0))
    assert (found.category, found.root.rank, found.facts["rank"]) == ("gpu_oom", 1, 1)


def test_a_rank_that_says_nothing_is_still_the_first():
    found = rank_logs.classified(evidence(trace(LOST_PEER), "step 3", rank=1, code=3))
    assert (found.category, found.facts["rank"]) == ("unknown", 1)


def test_a_single_job_is_judged_as_before():
    found = rank_logs.classified(evidence(trace(OUT_OF_MEMORY)))
    assert found.category == "gpu_oom"
    assert "rank" not in found.facts


TORCHRUN = """E1115 20:01:01.0 elastic/multiprocessing/api.py:1010] failed (exitcode: 3)
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-15_20:01:02
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 7)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-15_20:01:01
  rank      : 3 (local_rank: 1)
  exitcode  : 3 (pid: 8)"""


def test_torchrun_names_the_rank():
    found = rank_logs.classified(evidence(TORCHRUN, "", code=1))
    assert found.facts["rank"] == 3


def test_a_lagging_rank_is_a_hang():
    found = rank_logs.classified(
        evidence("step 9", "step 9", rank=1, code=None, signal=15, cause="rank_lagged")
    )
    assert (found.category, found.explanation.code) == ("comm_hang", "rank_lagged")


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (Distributed(procs_per_node=4), [2, 0, 3, 1]),
        (Distributed(nodes=2, procs_per_node=2, launcher="torchrun"), [2, 0]),
        (Distributed(procs_per_node=64), [2, 0, 3, 1, *range(4, 16)]),
    ],
)
def test_logs_in_the_order_of_their_worth(tmp_path, shape, wanted):
    """Of many ranks not all are read."""
    for rank in range(shape.world_size):
        (tmp_path / f"{rank}.log").write_text(f"rank {rank}\n")
    ranks = [{"rank": 3, "ended_at": 5.0}, {"rank": 1, "ended_at": 6.0}]
    end = End(1, None, "exited", "supervisor", 9.0, detail={"rank": 2, "ranks": ranks})
    logs = rank_logs.of_end(lambda rank: str(tmp_path / f"{rank}.log"), shape, end)
    assert [log.rank for log in logs] == wanted
    assert logs[0].tail[0].text == "rank 2"
