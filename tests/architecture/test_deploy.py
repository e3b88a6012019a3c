"""What is shipped for running it as a service or in a container fits what the program knows."""

from __future__ import annotations

import argparse
import configparser
import json
import re
import shlex

import pytest
import yaml

from runyard import settings
from runyard.cli import catalog
from runyard.cli.commands import server


def checked_command(words: list[str]) -> argparse.Namespace:
    """The flags as the command line reads them; fails for one that it does not know."""
    assert words[0] in catalog.COMMANDS
    assert words[0] == "server"
    parser = argparse.ArgumentParser(exit_on_error=False)
    server.configure(parser)
    args, unknown = parser.parse_known_args(words[1:])
    assert unknown == []
    return args


def checked_environment(names) -> None:
    known = {f"RUNYARD_{name.upper()}" for name in settings.Settings.__dataclass_fields__}
    assert {name for name in names if name.startswith("RUNYARD_")} <= known


@pytest.fixture(scope="module")
def instructions(root):
    """(stage, instruction, rest) of each line of the Dockerfile."""
    text = (root / "deploy/Dockerfile").read_text()
    joined = re.sub(r"\\\n\s*", "", "\n".join(li for li in text.splitlines() if li[:1] != "#"))
    found, stage = [], 0
    for line in filter(None, joined.splitlines()):
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        found.append((stage, word, rest.strip()))
    return found


def last(instructions, word):
    """What the finished image has of this instruction."""
    stages = max(stage for stage, _, _ in instructions)
    return [rest for stage, name, rest in instructions if name == word and stage == stages]


def test_image_starts_the_server_as_process_1(instructions):
    """An entry point in brackets is executed as it is, without a shell that would be process 1."""
    [entry], [command] = last(instructions, "ENTRYPOINT"), last(instructions, "CMD")
    assert json.loads(entry) == ["runyard"]
    args = checked_command(json.loads(command))
    assert (args.host, args.on_shutdown) == ("0.0.0.0", "keep")


def test_image_without_rights_and_with_its_data_on_a_volume(instructions):
    [user], [volume] = last(instructions, "USER"), last(instructions, "VOLUME")
    assert user not in ("root", "0")
    environment = dict(
        word.split("=", 1) for rest in last(instructions, "ENV") for word in rest.split()
    )
    checked_environment(environment)
    assert environment["RUNYARD_DATA_DIR"] == volume
    assert any(f"useradd --uid 1000 --gid {user}" in rest for rest in last(instructions, "RUN"))
    assert any(rest.rstrip().endswith(volume) for rest in last(instructions, "RUN"))


def test_image_is_asked_for_its_health_where_it_listens(instructions):
    [check] = last(instructions, "HEALTHCHECK")
    words = json.loads(check[check.index("[") :])
    [url] = re.findall(r"'(http://[^']+)'", words[-1])
    assert url == f"http://127.0.0.1:{settings.DEFAULT_PORT}/healthz"
    assert last(instructions, "EXPOSE") == [str(settings.DEFAULT_PORT)]
    compile(words[-1], "HEALTHCHECK", "exec")


def test_image_is_built_from_files_that_are_there_and_not_ignored(instructions, root):
    ignored = (root / ".dockerignore").read_text().splitlines()
    for stage, word, rest in instructions:
        if word != "COPY" or rest.startswith("--from"):
            continue
        assert stage == 1
        for name in rest.split()[:-1]:
            assert (root / name).exists()
            assert f"!{name}" in ignored


def test_image_copies_between_stages_that_exist(instructions):
    stages = {rest.split(" AS ")[1] for _, word, rest in instructions if " AS " in rest and word}
    used = {
        re.search(r"--from=(\S+)", rest)[1] for _, _, rest in instructions if "--from=" in rest
    }
    assert used == stages
    bases = {rest.split()[0] for _, word, rest in instructions if word == "FROM"}
    assert len(bases) == 1, "the environment made in one stage runs with the Python of the other"


def test_compose_fits_the_image(instructions, root):
    text = (root / "deploy/compose.yaml").read_text()
    asked = yaml.safe_load(text)
    service = asked["services"]["runyard"]
    assert (root / "deploy" / service["build"]["context"]).resolve() == root
    assert (root / service["build"]["dockerfile"]).is_file()
    args = checked_command(service["command"])
    assert (args.host, args.on_shutdown) == ("0.0.0.0", "keep")
    assert service["ports"] == [f"127.0.0.1:{settings.DEFAULT_PORT}:{settings.DEFAULT_PORT}"]
    [(volume, place)] = [entry.split(":") for entry in service["volumes"]]
    assert place == last(instructions, "VOLUME")[0]
    assert volume in asked["volumes"]
    checked_environment(service["environment"])
    assert "init" not in service, "another process 1 would end with the server"
    assert int(service["stop_grace_period"].rstrip("s")) > settings.Settings().grace_s


def test_unit_keeps_the_jobs(root):
    """R42"""
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read(root / "deploy/runyard.service")
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program.endswith("/runyard")
    args = checked_command(words)
    assert args.on_shutdown == "keep"
    assert args.data_dir == "/var/lib/" + service["StateDirectory"]
    assert (service["KillMode"], service["OOMPolicy"]) == ("process", "continue")
    assert service["Restart"] == "on-failure"


def test_guides_name_flags_that_exist(root):
    """Every `runyard server ...` in the two guides."""
    found = 0
    for name in ("service", "container"):
        text = (root / f"docs/guides/{name}.md").read_text()
        for line in re.findall(r"^docker .*\brunyard (server.*)$", text, re.MULTILINE):
            checked_command(shlex.split(line))
            found += 1
    assert found
