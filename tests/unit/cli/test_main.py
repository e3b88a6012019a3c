"""Finding commands, wrong usage, exit codes, and how little is imported."""

import subprocess
import sys

import pytest

from runyard import __version__
from runyard.cli import catalog
from runyard.cli.main import main
from scripted_server import problem


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in catalog.COMMANDS:
        assert f"\n  {name} " in out
    for alias in catalog.ALIASES:
        assert f"\n  {alias} " not in out


@pytest.mark.parametrize("name", catalog.COMMANDS)
def test_every_command_has_help(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"runyard {name}" in capsys.readouterr().out


def test_an_unknown_command_is_wrong_usage(capsys):
    assert main(["runn"]) == 2
    assert "Did you mean 'run'?" in capsys.readouterr().err


def test_a_flag_before_the_command_is_told_where_it_belongs(capsys):
    assert main(["--url", "http://x", "ls"]) == 2
    assert "the command comes first, then '--url'" in capsys.readouterr().err


def test_a_misspelt_flag_is_guessed(capsys):
    assert main(["submit", "--retry=3", "--", "true"]) == 2
    assert "did you mean --retries?" in capsys.readouterr().err
    assert main(["ls", "--zzz"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_an_environment_file_that_is_not_there(capsys):
    assert main(["submit", "--env-file", "/no/such/file", "--", "true"]) == 2
    assert "there is no file /no/such/file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["ls", "--nonsense"], ["show"], ["gpus", "melt"], ["run"]])
def test_wrong_usage_exits_2_with_a_sentence(words, capsys):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert err.startswith("runyard")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["ps"], "ls"),
        (["list"], "ls"),
        (["status"], "ls"),
        (["status", "--json"], "ls"),
        (["status", "job-1"], "show"),
        (["stop", "x"], "cancel"),
        (["kill", "x"], "cancel"),
        (["nonsense"], None),
    ],
)
def test_aliases(words, command):
    assert catalog.resolve(words[0], words[1:]) == command


def test_version(capsys):
    assert main(["version"]) == 0
    assert __version__ in capsys.readouterr().out
    assert main(["--version"]) == 0


def test_no_server_is_exit_code_3_and_no_traceback(server, cli):
    server.close()
    code, out, err = cli("ls")
    assert (code, out) == (3, "")
    assert server.url in err
    assert "runyard server" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (problem(404, "job_not_found", "There is no job job-x.", job="job-x"), 4),
        (problem(401, "unauthenticated", "A valid key is needed."), 5),
        (problem(403, "forbidden", "Key 'a' may not.", name="a", role="viewer"), 5),
        (problem(503, "shutting_down", "The server is shutting down."), 3),
        (problem(500, "internal", "Something went wrong."), 1),
    ],
)
def test_exit_codes_of_answers(server, cli, answer, expected):
    server.on("GET", "/jobs/job-x", answer)
    code, _, err = cli("show", "job-x")
    assert code == expected
    assert answer.body["message"] in err
    assert "Traceback" not in err


def test_errors_in_chinese(server, cli, monkeypatch):
    monkeypatch.setenv("RUNYARD_LANG", "zh")
    server.on("GET", "/jobs/job-x", problem(404, "job_not_found", "There is no job.", job="job-x"))
    assert "没有任务 job-x" in cli("show", "job-x")[2]


def test_a_closed_pipe_is_no_error(server):
    server.on("GET", "/jobs", [{"job_id": f"job-{n}"} for n in range(50)])
    argv = f"{sys.executable} -m runyard ls -q --url {server.url} | true"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {argv}"], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.returncode in (0, 141)


def _imported(*words):
    code = (
        "import sys\nfrom runyard.cli.main import main\n"
        f"code = main({list(words)!r})\nprint('\\n', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_next_to_nothing():
    found = _imported("--help")
    assert not found & {"argparse", "json", "http.client", "runyard.sdk.client", "rich", "yaml"}


def test_client_commands_are_light(server):
    """Client commands import neither pydantic nor the server, and rich only for terminals."""
    server.on("POST", "/jobs", {"job_id": "job-abc123", "status": "pending"})
    server.on("GET", "/jobs", [])
    for words in (["run", "-d", "--url", server.url, "--", "true"], ["ls", "--url", server.url]):
        found = _imported(*words)
        heavy = {"pydantic", "yaml", "rich", "typer", "click", "fastapi", "sqlalchemy", "psutil"}
        assert "runyard.sdk.client" in found
        assert not heavy & found
        assert not {
            name for name in found if name.startswith(("runyard.server", "runyard.engine"))
        }
