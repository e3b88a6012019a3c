"""Report, log and event files of one attempt, put together."""

from __future__ import annotations

import math

import pytest

from runyard.domain.monitoring import attempt_account
from runyard.domain.monitoring.attempt_account import AttemptAccount
from runyard.domain.monitoring.series import Sample
from runyard.domain.progress.hints import Hints
from runyard.domain.progress.point import Point


@pytest.fixture
def account() -> AttemptAccount:
    return AttemptAccount(Hints())


def _report(at: float, **known) -> Point:
    return Point(at, "report", **known)


def _log(at: float, **known) -> Point:
    return Point(at, "json_lines", **known)


def test_a_report_gives_samples_and_progress(account):
    found = account.take_report(_report(10.0, step=5, total_steps=100, fraction=0.05,
                                        values={"loss": 0.5, "learning_rate": 0.1}))  # fmt: skip
    assert found == [Sample("loss", 10.0, 0.5, 5), Sample("learning_rate", 10.0, 0.1, 5)]
    assert (account.fraction, account.step, account.total_steps) == (0.05, 5, 100)
    assert (account.source, account.step_at, account.phase) == ("report", 10.0, "training")


def test_totals_told_once_are_remembered(account):
    account.take_report(_report(1.0, step=0, total_steps=200, fraction=0.0))
    account.take_report(_report(2.0, step=50))
    assert account.fraction == 0.25


def test_totals_of_the_command_serve_where_nobody_tells_them():
    account = AttemptAccount(Hints(total_steps=1000))
    account.take_report(_report(2.0, step=50))
    assert account.fraction == 0.05
    account = AttemptAccount(Hints(total_epochs=4))
    account.take_report(_report(2.0, epoch=1.0))
    assert account.fraction == 0.25


def test_a_report_is_believed_before_the_log(account):
    account.take_log([_log(1.0, step=1, fraction=0.5, values={"loss": 1.0})])
    account.take_report(_report(2.0, step=10, total_steps=100, fraction=0.1, values={"loss": 2.0}))
    assert account.take_log([_log(3.0, step=2, fraction=0.9, values={"loss": 3.0})]) == []
    assert (account.fraction, account.step, account.source) == (0.1, 10, "report")


def test_of_log_and_event_files_the_first_keeps_a_metric(account):
    account.take_log([_log(1.0, step=1, values={"loss": 1.0})])
    found = account.take_events(
        [Sample("train/loss", 1.0, 1.0, 1), Sample("train/lr", 1.0, 0.1, 1)]
    )
    assert [sample.name for sample in found] == ["learning_rate"]
    kept = account.take_log([_log(2.0, step=2, values={"loss": 1.0, "learning_rate": 0.1})])
    assert [sample.name for sample in kept] == ["loss"]


def test_event_files_tell_the_step_where_nobody_else_does():
    account = AttemptAccount(Hints(total_steps=10))
    account.take_events([Sample("loss", 1.0, 1.0, 4), Sample("loss", 2.0, 1.0, 5)])
    assert (account.step, account.fraction, account.source) == (5, 0.5, "tensorboard")
    account.take_log([_log(3.0, step=6, fraction=0.6)])
    account.take_events([Sample("loss", 4.0, 1.0, 2)])
    assert (account.step, account.source) == (6, "json_lines")


def test_folders_of_event_files_tell_equal_tags_apart(account):
    first = account.take_events([Sample("many", 1.0, 1.0, 1)], "/out/runs/a")
    other = account.take_events([Sample("many", 1.0, 2.0, 1)], "/out/runs/b")
    held_out = account.take_events([Sample("loss", 1.0, 2.0, 1)], "/out/validation")
    assert [s.name for s in (*first, *other, *held_out)] == ["many", "b/many", "val_loss"]


def test_bad_tags_are_left_out(account):
    tags = ["", "\x00\x01", "ü" * 10, "x" * 500]
    found = account.take_events([Sample(tag, 1.0, 1.0, 1) for tag in tags])
    assert all(len(sample.name) <= 128 for sample in found)
    assert "" not in [sample.name for sample in found]


def test_two_values_of_one_step_at_one_time_are_both_kept(account):
    one = account.take_report(_report(10.0, step=5, values={"loss": 1.0}))
    other = account.take_report(_report(10.0, step=5, values={"loss": 2.0}))
    assert one[0].at < other[0].at < 10.001


def test_other_ranks_have_series_of_their_own(account):
    found = account.take_report(_report(1.0, step=7, rank=3, fraction=0.9, values={"loss": 1.0}))
    assert [sample.name for sample in found] == ["loss.rank3"]
    assert account.fraction is None
    assert account.take_report(_report(1.0, rank=5000, values={"loss": 1.0})) == []
    assert account.refused == 1


def test_names_without_end_are_bounded(account):
    many = attempt_account.MOST_NAMES + 500
    for number in range(many):
        account.take_report(_report(1.0, values={f"metric_{number}": 1.0}))
    assert account.refused == 500


def test_values_drawn_ten_times_a_second_are_kept_once_a_second(account):
    found = []
    for tenth in range(50):
        at = 100 + tenth / 10
        found += account.take_log([_log(at, step=tenth, epoch=tenth / 50, rate=10.0)])
    names = [sample.name for sample in found]
    assert names.count("epoch") == names.count("steps_per_sec") == 5


def test_evaluation_is_a_phase_of_its_own(account):
    account.take_log([_log(1.0, step=1, values={"loss": 1.0})])
    account.take_log([_log(2.0, values={"val_loss": 1.0})])
    assert account.phase == "evaluating"
    account.take_log([_log(3.0, step=2)])
    assert account.phase == "training"


def test_time_left_of_a_steady_run(account):
    for step in range(1, 41):
        at = 1000.0 + step
        account.take_report(_report(at, step=step, total_steps=100, fraction=step / 100))
    eta = account.eta(1040.0)
    assert eta is not None
    assert eta.seconds == pytest.approx(60, rel=0.05)
    assert eta.basis == "steps"


def test_a_clock_that_is_set_back_does_no_harm(account):
    for at, step in ((1000.0, 1), (1001.0, 2), (10.0, 3), (11.0, 4), (12.0, 5), (13.0, 6)):
        account.take_report(_report(at, step=step, total_steps=10, fraction=step / 10))
    eta = account.eta(13.0)
    assert eta is not None
    assert eta.seconds == pytest.approx(4, rel=0.1)


def test_nan_is_a_value_like_any_other(account):
    [sample] = account.take_report(_report(1.0, step=1, values={"loss": math.nan}))
    assert math.isnan(sample.value)
