"""Causes, plans and what happens next are told in both languages; R18, R20."""

import string

import pytest

from runyard.cli import repair_words, wording
from runyard.cli.words import repair_en, repair_zh
from runyard.domain.failures.categories import Category
from runyard.domain.recovery import plan_reasons

TABLES = ("DIAGNOSES", "PLANS", "GIVE_UPS", "NEXT", "STORY")
PLAN_CODES = {
    value
    for name, value in vars(plan_reasons).items()
    if name.isupper() and isinstance(value, str)
}


@pytest.fixture(params=["en", "zh"])
def language(request, monkeypatch):
    monkeypatch.setenv("RUNYARD_LANG", request.param)
    wording.language.cache_clear()
    yield request.param
    wording.language.cache_clear()


def placeholders(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("table", TABLES)
def test_both_languages_say_the_same(table):
    english, chinese = getattr(repair_en, table), getattr(repair_zh, table)
    assert set(english) == set(chinese)
    for key, text in english.items():
        assert placeholders(chinese[key]) == placeholders(text), key


def test_every_category_and_every_plan_has_words():
    assert {one.value for one in Category} <= set(repair_en.DIAGNOSES)
    assert set(repair_en.GIVE_UPS) == plan_reasons.GIVE_UPS
    assert set(repair_en.PLANS) >= PLAN_CODES - plan_reasons.GIVE_UPS


def test_a_reason_of_recovery_is_worded(language):
    told = wording.reason({"code": "not_retryable", "params": {"category": "import"}})
    assert "import" in told if language == "en" else "导入" in told
    assert wording.reason({"code": "budget_used_up", "params": {}})


@pytest.mark.usefixtures("language")
def test_the_story_of_a_repair():
    told = {
        "job_id": "job-1",
        "failures": [
            {
                "attempt": 1,
                "failure_type": "out_of_memory",
                "category": "gpu_oom",
                "explanation": {"code": "gpu_oom", "params": {}},
                "root": {"rank": 0, "number": 12, "text": "CUDA out of memory. " + "x" * 500},
                "changes": [
                    {"kind": "flag", "name": "--batch-size", "before": "32", "after": "16"},
                    {"kind": "env", "name": "A", "before": None, "after": "1"},
                ],
                "plan": {"code": "batch_size_reduced", "params": {}},
                "checkpoint": {
                    "path": "/c/step_10.pt",
                    "step": 10,
                    "passed_over": [{"path": "/c/step_15.pt", "step": 15, "why": "truncated"}],
                },
            }
        ],
        "downloads": [{"name": "model.bin", "bytes": 3 << 20, "resumed_bytes": 1 << 20}],
        "next": {"code": "given_up", "params": {}},
        "reproduce": {
            "command": ["train", "--name", "a b"],
            "working_dir": "/w",
            "env": {"A": "1", "RUNYARD_BATCH_SCALE": "0.5"},
            "batch_scale": 0.5,
            "params": {},
        },
    }
    lines = repair_words.story(told)
    whole = "\n".join(lines)
    assert "out_of_memory" in whole
    assert "12" in whole
    assert "CUDA out of memory." in whole
    assert "--batch-size 32 -> 16" in whole
    assert "/c/step_10.pt" in whole
    assert "truncated" in whole
    [download] = repair_words.downloads(told)
    assert "model.bin" in download
    assert "1.0 MB" in download
    assert "runyard retry job-1" in whole
    assert "cd /w && A=1 RUNYARD_BATCH_SCALE=0.5 train --name 'a b'" in whole
    assert len(lines) < 12
    assert max(map(len, lines)) < 220


@pytest.mark.usefixtures("language")
@pytest.mark.parametrize("told", [{}, {"failures": []}, {"failures": [{}]}, {"next": None}])
def test_odd_answers_are_no_trouble(told):
    assert isinstance(repair_words.story(told), list)


def test_the_cause_comes_before_what_is_not_done_about_it(language):
    given = {"code": "nothing_to_change", "params": {"category": "gpu_oom", "what": "batch_size"}}
    words = repair_en if language == "en" else repair_zh
    assert wording.reason(given).startswith(words.DIAGNOSES["gpu_oom"])
