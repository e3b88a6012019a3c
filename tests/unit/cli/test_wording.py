"""Every code is worded in both languages, and no wording falls over what a server may send."""

import string

import pytest

from runyard.cli import wording
from runyard.cli.words import en, zh
from runyard.domain import errors, reasons

REASONS = sorted(
    value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)
)


def _codes(kind):
    return {kind.code} | {code for child in kind.__subclasses__() for code in _codes(child)}


def _placeholders(template):
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("words", [en, zh])
def test_every_reason_is_worded(words):
    assert set(REASONS) - set(words.REASONS) == set()


@pytest.mark.parametrize("words", [en, zh])
def test_every_error_is_worded(words):
    assert _codes(errors.RunyardError) - set(words.ERRORS) == set()


@pytest.mark.parametrize(
    "name", ["REASONS", "ALERTS", "DELIVERY_ERRORS", "ERRORS", "MESSAGES", "WARNINGS", "NOUNS"]
)
def test_both_languages_say_the_same_things(name):
    assert set(getattr(en, name)) == set(getattr(zh, name))


def test_both_languages_use_parameters_that_exist():
    for code in en.MESSAGES:
        assert _placeholders(en.MESSAGES[code]) == _placeholders(zh.MESSAGES[code]), code
    for code in REASONS:
        assert _placeholders(zh.REASONS[code]) <= _placeholders(en.REASONS[code]), code


@pytest.mark.parametrize("code", [*REASONS, "code_of_a_newer_server"])
@pytest.mark.parametrize("params", [{}, {"jobs": [], "gpus": None, "wanted": "x", "x": [1]}])
def test_odd_parameters_are_no_trouble(code, params):
    assert wording.reason({"code": code, "params": params})


def test_amounts_are_told_with_their_units():
    params = {"resource": "memory", "wanted": 64.0, "free": 3.5, "total": 16.0}
    told = wording.reason({"code": "not_enough", "params": params})
    assert told == "needs 64GB memory, 3.5GB of 16GB free"


def test_what_a_cancelling_job_waits_for():
    """R5"""
    params = {"by": "ann", "cause": "user", "left_s": 30.4, "grace_s": 40.0, "until": 1.0}
    told = wording.reason({"code": "waiting_for_step", "params": params})
    assert told == "waiting for the current step, 31 s of grace left"
    told = wording.reason({"code": "lease_lost", "params": {"lease_s": 60.0}})
    assert told == "its client did not renew the lease of 1m 0s"


def test_alerts_name_the_holder():
    process = {"pid": 7, "name": "train", "state": "D", "where": "nfs_wait", "user": "ann"}
    told = wording.alert({"code": "cannot_be_killed", "params": {"processes": [process]}})
    assert "pid 7 (train, ann, state D in nfs_wait)" in told
    stale = {"seconds": 300, "by": "ann", "holders": []}
    told = wording.alert({"code": "cancel_stale", "params": stale})
    assert told == "still cancelling after 5m 0s, asked by ann; alive: nothing that can be seen"
    holder = {"pid": 7, "user": "eve", "name": "game"}
    gpus = [{"index": 1, "used_mb": 900, "holders": [holder]}]
    told = wording.alert({"code": "gpu_memory_held", "params": {"gpus": gpus}})
    assert "GPU 1: 900 MB (eve, pid 7, game)" in told
    assert wording.alert({"code": "of_a_newer_server", "params": {"x": 1}}).startswith("of_a")


@pytest.mark.parametrize("code", sorted(en.ALERTS))
@pytest.mark.parametrize("params", [{}, {"gpus": [3], "processes": "x", "holders": [1]}])
def test_odd_parameters_of_alerts_are_no_trouble(code, params):
    assert wording.alert({"code": code, "params": params})


def test_holders_are_named():
    holder = {"user": "ann", "pid": 71, "name": "python"}
    gpus = [{"index": 0, "holder": holder}, {"index": 1, "server": "other"}]
    told = wording.reason({"code": "gpus_held_elsewhere", "params": {"gpus": gpus}})
    assert "GPU 0: ann, pid 71, python" in told
    assert "GPU 1: another Runyard server" in told


def test_the_last_reason_of_used_up_retries_is_told():
    last = {"code": "exit_code", "params": {"code": 3}}
    told = wording.reason({"code": "retries_used_up", "params": {"max_retries": 2, "last": last}})
    assert "2 retries" in told
    assert "exit code 3" in told


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "RUNYARD_LANG": "zh"}, "zh"),
        ({}, "en"),
    ],
)
def test_language(monkeypatch, environment, language):
    for name in ("RUNYARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    wording.language.cache_clear()
    assert wording.language() == language


def test_chinese_reads_chinese(monkeypatch):
    monkeypatch.setenv("RUNYARD_LANG", "zh")
    wording.language.cache_clear()
    assert wording.status("running") == "运行中"
    assert "退出码 3" in wording.reason({"code": "exit_code", "params": {"code": 3}})
    assert "job-x" in wording.error("job_not_found", {"job": "job-x"}, "There is no job job-x.")


SERVICE = {"service": "db", "exit_code": None, "signal": None, "line": ""}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"code": "exited", "exit_code": 3}, "3"),
        ({"code": "exited", "signal": 9}, "SIGKILL"),
        ({"code": "not_ready", "ready_timeout_s": 90, "said": "HTTP 503"}, "HTTP 503"),
        ({"code": "port_in_use", "port": 9000}, "9000"),
        ({"code": "exec_failed", "path": "/x", "message": "no"}, "/x"),
        ({"code": "restarts_used_up", "exit_code": 4}, "4"),
        ({"code": "of a later release", "exit_code": 4}, "4"),
        ({"code": "exited", "exit_code": 1, "line": "no such table"}, "no such table"),
    ],
)
def test_how_a_service_failed(monkeypatch, language, params, shown):
    monkeypatch.setenv("RUNYARD_LANG", language)
    wording.language.cache_clear()
    said = wording.reason({"code": "service_failed", "params": {**SERVICE, **params}})
    assert "db" in said
    assert shown in said
    assert "?" not in said
    assert "None" not in said


@pytest.mark.parametrize(
    ("language", "shown"),
    [("en", "rank 3 failed first: ended with exit code 2"), ("zh", "rank 3 最先失败")],
)
def test_the_rank_that_failed_first_is_named(monkeypatch, language, shown):
    """R30"""
    monkeypatch.setenv("RUNYARD_LANG", language)
    said = wording.reason({"code": "exit_code", "params": {"code": 2, "rank": 3}})
    assert said.startswith(shown)


def test_a_rank_that_lagged_is_named_once(monkeypatch):
    monkeypatch.setenv("RUNYARD_LANG", "en")
    said = wording.reason({"code": "rank_lagged", "params": {"rank": 1, "limit_s": 600.0}})
    assert said == "rank 1 did not end within 10m of the first that did"


def test_a_job_of_several_nodes_says_what_every_node_must_have(monkeypatch):
    """R33: in numbers, in both languages."""
    each = {"gpu": 4, "cpu": 8, "memory": 64, "gpu_type": "H100"}
    waits = {
        "code": "not_enough_nodes",
        "params": {"wanted": 2, "free": 1, "total": 3, "each": each},
    }
    never = {
        "code": "never_fits",
        "params": {"resource": "node", "wanted": 4, "largest": 3, "each": each},
    }
    monkeypatch.setenv("RUNYARD_LANG", "en")
    wording.language.cache_clear()
    said = wording.reason(waits)
    assert "needs 2 nodes with 4 GPUs (H100), 8 CPU cores, 64GB memory" in said
    assert "1 of 3" in said
    assert "needs 4 with 4 GPUs" in wording.reason(never)
    monkeypatch.setenv("RUNYARD_LANG", "zh")
    wording.language.cache_clear()
    assert "4 GPU (H100)" in wording.reason(waits)
    assert "3" in wording.reason(never)
    monkeypatch.undo()
    wording.language.cache_clear()


def test_an_executor_that_nobody_offers_says_what_to_look_at():
    said = wording.reason({"code": "executor_unavailable", "params": {"executor": "ray"}})
    assert "no server offers it now" in said
    assert "runyard server --executor" in said
