"""The command line in this process against a scripted server."""

import pytest

from runyard.cli import wording
from runyard.cli.main import main
from scripted_server import ScriptedServer


@pytest.fixture
def server():
    made = ScriptedServer()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNYARD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.chdir(tmp_path)
    wording.language.cache_clear()
    yield
    wording.language.cache_clear()


@pytest.fixture
def cli(server, capfd, monkeypatch):
    """Runs a command and gives (exit code, stdout, stderr)."""
    monkeypatch.setenv("RUNYARD_URL", server.url)
    monkeypatch.setenv("RUNYARD_API_KEY", "secret")

    def run(*words):
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return code, out, err

    return run
