"""Notifications in words."""

import string

import pytest
from outbox_samples import ALERT, JOB, delivery

from runyard.cli.words import en as words_of_the_command_line
from runyard.domain import reasons
from runyard.domain.notifications import EVENTS, TEST
from runyard.notify import texts
from runyard.notify.words import en, zh


@pytest.mark.parametrize("name", ["TITLES", "LINES", "REASONS", "ALERTS"])
def test_both_languages_say_the_same_things(name):
    def named(template):
        return {field for _, field, _, _ in string.Formatter().parse(template) if field}

    ours, theirs = getattr(en, name), getattr(zh, name)
    assert set(ours) == set(theirs)
    assert {key: named(text) for key, text in ours.items()} == {
        key: named(text) for key, text in theirs.items()
    }


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("event", [*EVENTS, TEST])
def test_every_event_has_words(event, lang):
    said = texts.of(delivery(event, alert=ALERT if event == "alert" else None), lang)
    assert said.title
    assert said.body
    assert "{" not in said.title + said.body


def test_an_end_says_what_one_wants_to_know():
    said = texts.of(delivery(), "en")
    assert said.level == "bad"
    assert said.body.splitlines() == [
        "Job: job-7k2m9q4x",
        "Owner: anna",
        "Reason: it ended with exit code 3",
        "Exit code: 3",
        "Ran for: 2:03:04",
        f"More: {JOB['url']}",
    ]


def test_an_alert_of_a_machine_has_no_job():
    said = texts.of(delivery("alert", job=None, alert=ALERT), "en")
    assert said.title == "Alert (critical): 1.5 GB are left on the disk"
    assert said.body.splitlines() == ["Node: node-1", "Details: free_gb: 1.5"]
    assert said.level == "bad"


def test_a_job_that_never_started_ran_for_no_time():
    job = {**JOB, "started_at": None, "exit_code": None, "reason": None, "status": "cancelled"}
    said = texts.of(delivery("cancelled", job=job), "en")
    assert "Ran for" not in said.body
    assert said.level == "info"


def test_details_without_end_are_cut():
    alert = {**ALERT, "params": {"processes": "x" * 10_000}}
    assert len(texts.of(delivery("alert", alert=alert), "en").body) < 1000


def test_names_with_braces_are_left_alone():
    said = texts.of(delivery(job={**JOB, "name": "{0} {x.__class__} %s"}), "en")
    assert said.title == "Job {0} {x.__class__} %s failed"


def reason_line(code, lang="en", **params):
    job = {**JOB, "reason": {"code": code, "params": params}}
    return texts.of(delivery(job=job), lang).body.splitlines()[2]


def test_a_reason_inside_a_reason_is_worded_too():
    last = {"code": "timed_out", "params": {"limit_s": 3600}}
    said = reason_line("retries_used_up", max_retries=3, last=last)
    assert said == "Reason: 3 retries failed as well; the last time it ran longer than 1:00:00"
    said = reason_line("retries_used_up", "zh", max_retries=3, last=last)
    assert said == "原因: 3 次重试也失败了, 最后一次: 运行超过 1:00:00"


def test_a_code_without_words_is_shown_as_it_is():
    assert reason_line("of_a_newer_server", a=1, b=None) == "Reason: of_a_newer_server (a: 1)"


def test_a_parameter_that_is_missing_breaks_nothing():
    assert reason_line("exit_code") == "Reason: it ended with exit code ?"
    assert reason_line("timed_out", limit_s=float("nan")).endswith("0:00:00")


def test_words_are_for_codes_that_exist():
    known = {value for value in vars(reasons).values() if isinstance(value, str)}
    assert set(en.REASONS) <= known
    assert set(en.ALERTS) <= set(words_of_the_command_line.ALERTS)
