"""The newest good checkpoint is gone on from, and the last two good ones stay (R19)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from runyard.domain.checkpoints import keeping, resuming
from runyard.domain.checkpoints.record import CheckpointRecord, CheckpointVerdict
from runyard.domain.reasons import Reason
from runyard.domain.recovery.step import Resume, ResumeRule

GOOD, BAD, GONE = CheckpointVerdict.GOOD, CheckpointVerdict.BAD, CheckpointVerdict.GONE
UNKNOWN = CheckpointVerdict.UNKNOWN


def saved(step, verdict=GOOD, *, at=None, size=100, reported=False, why=None, metrics=None):
    return CheckpointRecord(
        job_id=1,
        attempt=1,
        path=f"/c/{step}-{at}",
        family="torch",
        size_bytes=size,
        saved_at=float(step if at is None else at),
        step=step,
        verdict=verdict,
        reported=reported,
        metrics=metrics or {},
        why=Reason(why) if why else None,
    )


def steps(records):
    return [one.step for one in records]


def test_the_newest_good_one_first_and_bad_ones_never():
    records = [saved(1), saved(2), saved(3, BAD), saved(4, GONE), saved(5, UNKNOWN)]
    assert steps(resuming.choose(records)) == [2, 1]


def test_newest_is_by_time_because_steps_go_back():
    assert steps(resuming.choose([saved(900, at=1), saved(200, at=2)])) == [200, 900]


def test_before_a_step_for_divergence():
    records = [saved(100), saved(200), saved(300), saved(400)]
    wanted = Resume(ResumeRule.BEFORE_STEP, step=300)
    assert steps(resuming.choose(records, wanted)) == [200, 100]
    assert steps(resuming.choose(records, Resume(back=1))) == [300, 200, 100]
    excluding = Resume(excluding=(records[3].path,))
    assert steps(resuming.choose(records, excluding)) == [300, 200, 100]
    assert resuming.choose(records, Resume(ResumeRule.NONE)) == []


def test_where_a_program_reports_only_that_counts():
    records = [saved(1, reported=True), saved(2)]
    assert steps(resuming.choose(records)) == [1]
    assert resuming.choose([saved(1, BAD, reported=True), saved(2)]) == []


def test_formats_that_prove_nothing_count_when_nothing_better_is_there():
    def unproven(step, size):
        return saved(step, UNKNOWN, size=size, why="format_not_checked")

    records = [unproven(1, 100), unproven(2, 100), unproven(3, 40)]
    assert steps(resuming.choose(records)) == [2, 1], "the last was cut short"
    assert steps(resuming.choose([saved(0), *records])) == [0]
    assert resuming.choose([saved(1, UNKNOWN, why="being_written")]) == []


def test_the_last_two_good_ones_are_kept_whatever_is_asked_for():
    records = [saved(1), saved(2), saved(3), saved(4, BAD)]
    assert steps(keeping.superfluous(records, 1)) == [1]
    assert keeping.superfluous(records, 3) == []
    assert keeping.superfluous([saved(1), saved(2, BAD), saved(3, BAD)], 1) == []
    assert steps(keeping.superfluous([saved(1, BAD), saved(2), saved(3)], 2)) == [1]


def test_the_best_is_kept_however_old_it_is():
    told = [3.0, 1.0, 2.0, float("nan"), 2.5, 2.5]
    records = [saved(step, metrics={"eval_loss": loss}) for step, loss in enumerate(told)]
    assert keeping.best(records).step == 1
    assert steps(keeping.superfluous(records, 2)) == [3, 2, 0]


def test_the_best_of_what_is_better_when_it_is_more():
    records = [
        saved(step, metrics={"val_accuracy": step / 10, "loss": step}) for step in (3, 1, 2)
    ]
    assert keeping.best(records).step == 3, "held-out data tell more than the training's loss"
    records = [saved(1, metrics={"loss": 1}), saved(2, metrics={"loss": 1}), saved(3)]
    assert keeping.best(records).step == 2, "the newest of equals"


def test_without_numbers_there_is_no_best():
    assert keeping.best([saved(1), saved(2)]) is None
    assert keeping.best([saved(1, metrics={"loss": float("nan")}), saved(2)]) is None
    assert keeping.best([saved(1, metrics={"loss": "NaN", "step": 3})]) is None


def test_what_is_in_use_is_kept():
    records = [saved(step) for step in range(5)]
    assert steps(keeping.superfluous(records, 2)) == [2, 1, 0]
    assert steps(keeping.superfluous(records, 2, in_use=[records[1].path])) == [2, 0]


@given(
    some.lists(some.tuples(some.sampled_from(list(CheckpointVerdict)), some.integers(0, 9))),
    some.integers(0, 6),
)
def test_what_is_removed_is_never_what_would_be_chosen(drawn, keep):
    records = [saved(n, verdict, at=at) for n, (verdict, at) in enumerate(drawn)]
    removed = keeping.superfluous(records, keep)
    left = [one for one in records if one not in removed]
    assert all(one.verdict in (GOOD, BAD) for one in removed)
    assert resuming.choose(records)[:2] == resuming.choose(left)[:2]
