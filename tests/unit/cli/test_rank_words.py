"""How `show` tells the ranks of a job."""

from runyard.cli.commands.show import ranks_text

SHAPE = {"nodes": 2, "procs_per_node": 3, "launcher": "env"}


def rank(number, state="ended", exit_code=None, signal=None):
    return {"rank": number, "state": state, "exit_code": exit_code, "signal": signal}


def test_ranks_that_are_alike_are_told_together():
    """R30"""
    ranks = [
        rank(0, exit_code=0),
        rank(1, exit_code=3),
        rank(2, exit_code=0),
        rank(3, exit_code=0),
        rank(4, signal=15),
        rank(5),
    ]
    job = {"distributed": SHAPE, "attempt": {"ranks": ranks}}
    assert ranks_text(job).splitlines() == [
        "6 (2 x 3, env)",
        "0, 2-3: exit 0",
        "1: exit 3",
        "4: SIGTERM",
        "5: ended",
    ]


def test_ranks_that_run_and_those_nobody_knows():
    running = [rank(0, "running"), rank(1, "running"), rank(2, None)]
    job = {"distributed": SHAPE, "attempt": {"ranks": running}}
    assert ranks_text(job).splitlines()[1:] == ["0-1: running", "2: ?"]
    assert ranks_text({"distributed": SHAPE, "attempt": None}) == "6 (2 x 3, env)"
    assert ranks_text({"distributed": None}) == ""
