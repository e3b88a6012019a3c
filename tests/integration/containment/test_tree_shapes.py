"""Whatever shape a job's processes take, its end leaves none of them (R41).

Truth for "all dead" is end-of-file on a FIFO that every process of the tree holds.
"""

import os
import signal

import pytest
from workloads import SHAPES

NOT_BY_TAG = {"hopper_1ms", "hopper_tight_x4"}  # a scan can miss these; only a reaper cannot


@pytest.mark.parametrize("shape", SHAPES)
def test_cancel_leaves_nothing(yard, shape):
    attempt_id, alive, _ = yard.start_shape(shape)
    assert yard.stop(attempt_id, grace_s=0.2)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["cause"], end["by"], end["proof"]) == ("cancelled", "supervisor", "echild")
    assert end["code"] is None
    assert end["signal"] in (signal.SIGTERM, signal.SIGKILL)
    assert end["stop"]["requested_by"] == "tester"


@pytest.mark.parametrize("shape", SHAPES)
def test_main_exits_leftovers_killed(yard, shape):
    attempt_id, alive, go = yard.start_shape(shape, then="exit")
    with open(go, "wb") as file:
        file.write(b"g")
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["cause"], end["code"], end["proof"]) == ("exited", 42, "echild")


@pytest.mark.parametrize("shape", SHAPES)
def test_keeper_ends_the_tree_of_a_killed_supervisor(yard, shape):
    attempt_id, alive, _ = yard.start_shape(shape)
    os.kill(yard.supervisor_pid(attempt_id), signal.SIGKILL)
    end = yard.wait_end(attempt_id)
    assert alive.all_dead_now()
    assert (end["cause"], end["by"], end["proof"]) == ("supervisor_lost", "keeper", "scan")
    assert end["code"] is None
