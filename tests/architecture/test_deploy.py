"""What is shipped for running it as a service or in a container fits what the program knows."""

from __future__ import annotations

import argparse
import configparser
import importlib.util
import json
import re
import shlex
from pathlib import Path

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


# Ray


@pytest.fixture(scope="module")
def ray_flags():
    """Those of `ray start`, read from its program: loading Ray takes seconds."""
    found = importlib.util.find_spec("ray")
    if found is None:
        pytest.skip("Ray is not installed")
    text = (Path(found.origin).parent / "scripts/scripts.py").read_text()
    begin = text.index("\ndef start(")
    options = text[text.rindex("@cli.command", 0, begin) : begin]
    return set(re.findall(r'^\s*(?:@click\.option\()?"(--[a-z-]+)"', options, re.MULTILINE))


def parts_of(words):
    """(settings, `ray start` or `runyard server` and its flags) of each command of a line."""
    parts, rest = [], shlex.split(words)
    while rest:
        end = rest.index("&&") if "&&" in rest else len(rest)
        part, rest = rest[:end], rest[end + 1 :]
        program = next(i for i, word in enumerate(part) if "=" not in word and word != "exec")
        settings_before = dict(word.split("=", 1) for word in part[:program] if "=" in word)
        parts.append((settings_before, part[program:]))
    return parts


def checked_ray_start(words, known):
    assert words[0].rpartition("/")[2] == "ray"
    assert words[1] == "start"
    flags = {word.partition("=")[0] for word in words[2:]}
    assert flags <= known
    return flags


def joins_with_token(environment):
    """A cluster without it lets everybody run what they like."""
    return environment["RAY_AUTH_MODE"] == "token" and environment["RAY_AUTH_TOKEN_PATH"]


def serves_on_ray(words):
    assert words[0] == "runyard"
    args = checked_command(words[1:])
    return (args.executors, args.ray_address, args.on_shutdown) == ("ray", "auto", "keep")


def test_ray_image_is_the_plain_one_with_a_ray_that_is_supported(root):
    text = (root / "deploy/ray/Dockerfile").read_text()
    assert re.findall(r"^FROM (.*)$", text, re.MULTILINE) == ["runyard"]
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE)[-1] == "runyard"
    [entry] = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert json.loads(entry) == [], "nodes run `ray`, not `runyard`"
    files = ("Dockerfile", "cluster.yaml", "raycluster.yaml")
    texts = [(root / "deploy/ray" / name).read_text() for name in files]
    pinned = [re.findall(r'(?:ray(?:\[default\])?==|rayVersion: ")([\d.]+)', one) for one in texts]
    assert [len(found) for found in pinned] == [1, 1, 1]
    assert len({version for [version] in pinned}) == 1, "nodes of one cluster have one Ray"
    tested = re.search(r"^ray==([\d.]+)", (root / "requirements-dev.lock").read_text(), re.M)
    assert pinned[0] == [tested[1]], "what is shipped is what the tests run with"


def test_ray_cluster_of_machines(root, ray_flags):
    text = (root / "deploy/ray/cluster.yaml").read_text()
    asked = yaml.safe_load(text)
    [token] = asked["file_mounts"]
    assert f"chmod 600 {token}" in asked["setup_commands"]
    for role in ("head", "worker"):
        [(environment, words)] = parts_of(asked[f"{role}_start_ray_commands"][0])
        assert joins_with_token(environment) == token
        flags = checked_ray_start(words, ray_flags)
        assert ("--head" if role == "head" else "--address") in flags
    told = re.search(r"on the head: (runyard server.*?) \(", text)
    assert checked_command(shlex.split(told[1])[1:]).ray_address == "auto"


def test_ray_compose(root, ray_flags):
    asked = yaml.safe_load((root / "deploy/ray/compose.yaml").read_text())
    head, worker = asked["services"]["head"], asked["services"]["worker"]
    assert (root / "deploy/ray" / head["build"]["context"]).resolve() == root
    assert (root / head["build"]["dockerfile"]).is_file()
    [secret] = asked["secrets"]
    for service in (head, worker):
        assert service["secrets"] == [secret]
        assert joins_with_token(service["environment"]) == f"/run/secrets/{secret}"
        assert {entry.split(":")[0] for entry in service["volumes"]} <= set(asked["volumes"])
    assert set(worker["volumes"]) < set(head["volumes"]), "one path for outputs on every node"
    assert head["command"][:2] == ["sh", "-c"]
    [(_, first), (_, second)] = parts_of(head["command"][2])
    assert "--head" in checked_ray_start(first, ray_flags)
    assert serves_on_ray(second)
    [(_, joins)] = parts_of(worker["command"])
    assert {"--address", "--block"} <= checked_ray_start(joins, ray_flags)
    port = next(word for word in first if word.startswith("--port=")).partition("=")[2]
    assert f"--address=head:{port}" in joins


def test_ray_cluster_of_kubernetes(root, ray_flags):
    documents = yaml.safe_load_all((root / "deploy/ray/raycluster.yaml").read_text())
    cluster, policy = documents
    head, [workers] = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    for group in (head, workers):
        assert {f"--{name}" for name in group["rayStartParams"]} <= ray_flags
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            assert set(mounts) <= volumes
            environment = {entry["name"]: entry["value"] for entry in container["env"]}
            assert joins_with_token(environment).startswith(mounts["token"])
            assert mounts["outputs"] == "/outputs"
    node, server_container = head["template"]["spec"]["containers"]
    assert serves_on_ray(server_container["command"])
    shared = [mount for mount in node["volumeMounts"] if mount["name"] == "ray"]
    assert shared[0] in server_container["volumeMounts"], "the sockets by which it is a member"
    assert (workers["minReplicas"], workers["maxReplicas"]) == (workers["replicas"],) * 2
    chosen = {"matchLabels": {"ray.io/cluster": cluster["metadata"]["name"]}}
    assert policy["spec"]["podSelector"] == chosen
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": chosen}]}]
