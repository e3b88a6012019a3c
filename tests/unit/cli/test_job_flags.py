"""Flags and job files become the API's fields."""

import json

import pytest

from runyard.cli import job_flags, options
from runyard.cli.commands import run as run_command
from runyard.cli.complaints import Complaint


def jobs(*words):
    parser = options.parser("run", "x")
    run_command.configure(parser)
    return job_flags.jobs(options.parse(parser, [str(word) for word in words], takes_command=True))


def job(*words):
    (found,) = jobs(*words)
    return found


def test_every_flag_has_its_field(tmp_path):
    (tmp_path / "vars").write_text("# a comment\nexport A=1\nB='two words'\n\n")
    found = job(
        *("--name", "n", "--description", "d", "--gpus", "A100:2", "--cpus", "2.5"),
        *("--mem", "512MB", "--time", "2h", "--priority", "high", "--retries", "1"),
        *("--grace", "5s", "--env", "C=3=4", "--env-file", tmp_path / "vars"),
        *("--workdir", "sub", "--executor", "local", "--output", "out", "--dataset", "4"),
        *("--ports", "tensorboard,api", "--after", "job-a", "--after", "job-b:end"),
        *("--label", "team=a", "--param", "lr=0.1", "--param", "name=x", "--param", "n=3"),
        *("--prefetch", "hf://a/b", "--prefetch", "s3://c/d", "--tty", "--isolation", "strict"),
        *("--hold", "--lease", "1m", "--", "python", "x.py", "--name", "y"),
    )
    found.pop("base_env")
    assert found == {
        "name": "n",
        "description": "d",
        "gpu_count": 2,
        "gpu_type": "A100",
        "cpu_cores": 2.5,
        "memory_gb": 0.5,
        "timeout_s": 7200.0,
        "priority": "high",
        "max_retries": 1,
        "grace_s": 5.0,
        "env_vars": {"A": "1", "B": "two words", "C": "3=4"},
        "working_dir": str(tmp_path / "sub"),
        "executor": "local",
        "output_path": str(tmp_path / "out"),
        "dataset_ids": [4],
        "prefetch": ["hf://a/b", "s3://c/d"],
        "tty": True,
        "isolation": "strict",
        "ports": ["tensorboard", "api"],
        "depends_on": ["job-a", {"job": "job-b", "on": "end"}],
        "labels": {"team": "a"},
        "params": {"lr": 0.1, "name": "x", "n": 3},
        "hold": True,
        "lease_s": 60.0,
        "command": ["python", "x.py", "--name", "y"],
    }


def test_nothing_is_sent_that_was_not_given(tmp_path):
    found = job("--", "true")
    assert set(found) == {"command", "working_dir", "base_env"}
    assert found["working_dir"] == str(tmp_path)


def test_only_these_variables_travel(monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", "/venv")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "no")
    sent = job("--", "true")["base_env"]
    assert sent["VIRTUAL_ENV"] == "/venv"
    assert set(sent) <= {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"}


def test_a_job_in_an_image_gets_nothing_of_this_machine():
    found = job("--image", "pytorch", "--", "true")
    assert "working_dir" not in found
    assert "base_env" not in found


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--", "python", "x.py", "-d"], ["python", "x.py", "-d"]),
        (["python", "x.py", "--gpus", "4"], ["python", "x.py", "--gpus", "4"]),
        (["--", "echo hi | wc -c"], "echo hi | wc -c"),
        (["--", "git", "log", "--", "x"], ["git", "log", "--", "x"]),
        (["git", "log", "--", "x"], ["git", "log", "--", "x"]),
        (["--", "true"], ["true"]),
    ],
)
def test_the_command_is_left_alone(words, command):
    assert job(*words)["command"] == command


def test_ports_as_a_number():
    assert job("--ports", "2", "--", "true")["ports"] == 2
    assert job("--port", "a", "--port", "b", "--", "true")["ports"] == ["a", "b"]


def test_a_bare_variable_passes_on_what_it_is_here(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert job("-e", "WANDB_MODE", "--", "true")["env_vars"] == {"WANDB_MODE": "offline"}
    with pytest.raises(Complaint):
        job("-e", "NOT_SET_HERE", "--", "true")


@pytest.mark.parametrize(
    "text",
    [
        "command: train\nmemory_gb: 8GB\ntimeout_s: 2h\ngpu_count: A100:2\nlabels: {a: b}\n",
        '{"command": "train", "memory_gb": 8, "timeout_s": 7200, "gpu_count": 2,'
        ' "gpu_type": "A100", "labels": {"a": "b"}}',
    ],
)
def test_a_file_in_yaml_or_json(tmp_path, text):
    (tmp_path / "job").write_text(text)
    found = job("-f", "job", "--label", "c=d", "--name", "n")
    assert (found["command"], found["memory_gb"], found["timeout_s"]) == ("train", 8, 7200)
    assert (found["gpu_count"], found["gpu_type"], found["name"]) == (2, "A100", "n")
    assert found["labels"] == {"a": "b", "c": "d"}


def test_flags_and_command_override_the_file(tmp_path):
    (tmp_path / "job.yaml").write_text("command: a\npriority: low\nworking_dir: .\n")
    found = job("-f", "job.yaml", "--priority", "high", "--", "b")
    assert (found["command"], found["priority"]) == (["b"], "high")
    assert found["working_dir"] == str(tmp_path)


def test_several_jobs_in_a_file(tmp_path):
    (tmp_path / "jobs.yaml").write_text("command: a\n---\n- command: b\n- command: c\n")
    assert [one["command"] for one in jobs("-f", "jobs.yaml")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("command: [a\n", "neither YAML nor JSON"),
        ("just words\n", "mapping"),
        ("", "no job"),
        ("command: a\nmemory_gb: lots\n", "memory"),
    ],
)
def test_a_bad_file_is_explained(tmp_path, text, words):
    (tmp_path / "job.yaml").write_text(text)
    with pytest.raises(Complaint, match=words):
        jobs("-f", "job.yaml")


def test_a_missing_and_a_binary_file(tmp_path):
    with pytest.raises(Complaint, match="no file"):
        jobs("-f", "nowhere.yaml")
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Complaint, match="UTF-8"):
        jobs("-f", "job.yaml")


def test_an_array_is_written_out():
    found = jobs("--array", "0-4:2%2", "--name", "sweep", "--", "true")
    assert [one["name"] for one in found] == ["sweep-0", "sweep-2", "sweep-4"]
    assert [one["array"]["index"] for one in found] == [0, 2, 4]
    assert {one["array"]["limit"] for one in found} == {2}
    assert len({one["array"]["array_id"] for one in found}) == 1
    json.dumps(found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-4", 1e-4),
        ("true", True),
        ("007", "007"),
        ("nan", "nan"),
        ("1_0", "1_0"),
        ("x", "x"),
    ],
)
def test_parameters_have_types(text, value):
    found = job("--param", f"p={text}", "--", "true")["params"]["p"]
    assert found == value
    assert type(found) is type(value)


def test_services_come_on_top_of_the_file_s(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("command: train\nservices: [{name: db, command: serve}]\n")
    found = job("-f", str(path), "--service", "reward=python r.py --port {port} --x=1")
    assert found["services"] == [
        {"name": "db", "command": "serve"},
        {"name": "reward", "command": "python r.py --port {port} --x=1"},
    ]


@pytest.mark.parametrize("word", ["reward", "=serve", "reward=", "reward= "])
def test_a_service_without_name_or_command(word):
    with pytest.raises(Complaint, match="NAME=COMMAND"):
        job("--service", word, "--", "true")


def test_prefetch_adds_to_what_the_file_fetches(tmp_path):
    (tmp_path / "job.json").write_text('{"command": "x", "prefetch": ["hf://a/b"]}')
    assert job("-f", tmp_path / "job.json", "--prefetch", "s3://c/d")["prefetch"] == [
        "hf://a/b",
        "s3://c/d",
    ]


def test_flags_of_a_distributed_job_change_what_the_file_says(tmp_path):
    """R30"""
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"command": "x", "distributed": {"nodes": 2, "launcher": "env"}}))
    flags = ("--procs-per-node", "4", "--launcher", "torchrun", "--placement", "spread")
    wanted = {"nodes": 2, "procs_per_node": 4, "launcher": "torchrun", "placement": "spread"}
    assert job("-f", path, *flags)["distributed"] == wanted
    assert job("--nodes", "3", "--", "x")["distributed"] == {"nodes": 3}
