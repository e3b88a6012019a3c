"""Settings: where they come from, which wins, and how a wrong one is named."""

from pathlib import Path

import pytest

from runyard import settings
from runyard.domain import errors


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in ("CONFIG", "DATA_DIR", "URL", "API_KEY", "MAX_CONCURRENT", "RETRY_DELAYS"):
        monkeypatch.delenv(f"RUNYARD_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_defaults_users_may_count_on():
    """R11, R12, R14, R21, R54, R55"""
    got = settings.load()
    assert (got.max_concurrent, got.port) == (2, 8765)
    assert (got.gate_cpu, got.gate_memory, got.gate_disk) == (90, 85, 90)
    assert got.retry_delays == (60, 300, 900)
    assert got.port_range[0] == 38000
    assert got.resource_check_interval == 30
    assert got.data_dir == Path.home() / ".runyard"


def test_flag_over_environment_over_file(monkeypatch, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "runyard.toml").write_text('max_concurrent = 3\ngrace_s = 7\nretry_delays = "1,2"\n')
    monkeypatch.setenv("RUNYARD_DATA_DIR", str(data))
    assert settings.load().max_concurrent == 3
    monkeypatch.setenv("RUNYARD_MAX_CONCURRENT", "4")
    assert settings.load().max_concurrent == 4
    got = settings.load({"max_concurrent": 5, "gpus": "0,2", "port_range": "39000-39001"})
    assert (got.max_concurrent, got.grace_s, got.retry_delays) == (5, 7, (1, 2))
    assert got.gpus == (0, 2)
    assert got.port_range == (39000, 39001)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_concurrent", "0"),
        ("max_concurrent", "many"),
        ("gate_cpu", "120"),
        ("port_range", "9-3"),
        ("retry_delays", "-1"),
        ("on_shutdown", "perhaps"),
        ("database_url", "mysql://x"),
        ("port", "70000"),
    ],
)
def test_a_wrong_setting_is_named(name, value):
    with pytest.raises(errors.BadSettings) as caught:
        settings.load({name: value})
    assert caught.value.params["name"] == name


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("gpus", "x", "a whole number is wanted"),
        ("max_concurrent", "two", "a whole number is wanted"),
        ("retry_delays", "1,soon", "a number is wanted"),
        ("port_range", "many", "a range of ports such as"),
        ("port_range", "1-2-3", "a range of ports such as"),
    ],
)
def test_what_a_setting_wants_is_said_in_words(name, value, wanted):
    with pytest.raises(errors.BadSettings, match=wanted):
        settings.load({name: value})


def test_an_unknown_name_in_the_file_is_refused(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text("max_concurent = 3\n")
    with pytest.raises(
        errors.BadSettings, match=r"no such setting \(did you mean max_concurrent\?\)"
    ):
        settings.load({"config": str(file)})


def test_clients_find_the_local_server(monkeypatch, tmp_path):
    assert settings.client_target(tmp_path) == ("http://127.0.0.1:8765", "")
    (tmp_path / "server.json").write_text('{"url": "http://127.0.0.1:9999"}')
    (tmp_path / "admin.key").write_text("secret\n")
    assert settings.client_target(tmp_path) == ("http://127.0.0.1:9999", "secret")
    monkeypatch.setenv("RUNYARD_URL", "http://elsewhere:1")
    monkeypatch.setenv("RUNYARD_API_KEY", "other")
    assert settings.client_target(tmp_path) == ("http://elsewhere:1", "other")
