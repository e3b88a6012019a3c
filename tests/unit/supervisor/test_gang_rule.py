"""When ranks are ended together, and whose end is the attempt's."""

import pytest

from runyard.supervisor import gang_rule, journal, rank_records
from runyard.supervisor.gang_rule import RankEnd

NEVER = float("inf")


def end(rank, at, code=0, signal=None):
    return RankEnd(rank, code, signal, at)


def decide(*ends, now=100.0, ranks=3):
    return gang_rule.decide(ends, ranks, now, 10.0, 600.0)


@pytest.mark.parametrize(
    ("ends", "now", "verdict"),
    [
        ((), 100.0, ("", NEVER)),
        ((end(0, 50.0, 1),), 55.0, ("", 60.0)),
        ((end(0, 50.0, 1),), 60.0, ("rank_failed", 60.0)),
        ((end(0, 50.0, None, 9),), 60.0, ("rank_failed", 60.0)),
        ((end(0, 50.0),), 100.0, ("", 650.0)),
        ((end(0, 50.0),), 650.0, ("rank_lagged", 650.0)),
        ((end(0, 50.0), end(1, 90.0, 2)), 99.0, ("", 100.0)),
        ((end(0, 50.0), end(1, 90.0, 2)), 100.0, ("rank_failed", 100.0)),
        ((end(0, 50.0), end(1, 90.0, 2), end(2, 95.0)), 1000.0, ("", NEVER)),
    ],
)
def test_the_gang_rule(ends, now, verdict):
    """R30"""
    assert decide(*ends, now=now) == verdict


def test_whose_end_it_is():
    ends = [end(0, 1.0), end(2, 2.0, 3), end(1, 3.0, 1)]
    assert gang_rule.deciding(ends, 3).rank == 2
    assert gang_rule.deciding(ends[:1], 3) is None
    assert gang_rule.deciding([end(0, 1.0), end(1, 2.0)], 2).rank == 1
    assert gang_rule.deciding([end(1, 1.0, None, None)], 3).rank == 1


def test_a_signal_out_of_the_blue_came_first():
    seen = [end(0, 1.0, 1), end(1, 1.0, None, 6), end(2, 1.0, None, 9)]
    assert [one.rank for one in gang_rule.seen_together(seen)] == [2, 0, 1]


def record_with(*exits, ranks=3):
    record = journal.Journal()
    spec = {"ranks": [{"rank": rank, "local_rank": rank} for rank in range(ranks)]}
    record.add(journal.new_record("spec", spec), 1)
    for rank in range(ranks):
        record.add(journal.new_record("job", {"rank": rank, "pid": 100 + rank}), 1)
    for fields in exits:
        record.add(journal.new_record("main_exit", fields), 1)
    return record


def left(rank, code=0, signal=None, **more):
    return {"rank": rank, "code": code, "signal": signal, "ended_at": 1.0 + rank, **more}


def test_the_end_of_main_is_open_until_a_rank_failed_or_all_ended():
    assert record_with(left(0)).main_exit is None
    assert record_with(left(0), left(1, 4)).main_exit["rank"] == 1
    assert record_with(left(1), left(0), left(2)).main_exit["rank"] == 2


def test_what_an_exit_record_tells_of_ranks():
    record = record_with(left(2, 3), left(0, None, 15, stop={"cause": "rank_failed"}))
    told = rank_records.told(record.spec, rank_records.exits(record), record.main_exit)
    assert told["rank"] == 2
    assert [(one["rank"], one["code"], one["signal"]) for one in told["ranks"]] == [
        (0, None, 15),
        (1, None, None),
        (2, 3, None),
    ]


@pytest.mark.parametrize(("cause", "named"), [("user", False), ("rank_lagged", True)])
def test_a_rank_that_was_told_to_end_is_not_to_blame(cause, named):
    record = record_with(left(1, None, 15, stop={"cause": cause}))
    told = rank_records.told(record.spec, rank_records.exits(record), record.main_exit)
    assert ("rank" in told) is named


def test_states_while_it_runs():
    states = rank_records.states(record_with(left(1, 5)))
    assert [one["state"] for one in states] == ["running", "ended", "running"]
    assert (states[1]["pid"], states[1]["exit_code"]) == (101, 5)
    assert rank_records.states(journal.Journal()) == []
