"""What the documents say is so: links, commands, states, settings, words, requirements."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from runyard import settings
from runyard.domain import states

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
# Words of the glossary's third column that have another honest use in names.
OTHERWISE_USED = {"lease"}


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    body = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def code_of(text: str) -> list[str]:
    """Command lines and code spans of a document."""
    blocks = [
        body for language, body in FENCE.findall(text) if language in ("", "sh", "bash", "console")
    ]
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return lines + SPAN.findall(FENCE.sub("", text))


def outline_of(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere(root, documents):
    broken = []
    for document in documents:
        for target in LINK.findall(FENCE.sub("", document.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (document.parent / name).resolve() if name else document
            if not path.exists() or (
                anchor and path.suffix == ".md" and anchor not in outline_of(path)
            ):
                broken.append(f"{document.relative_to(root)}: {target}")
    assert not broken


def moves(table) -> set[tuple[str, str]]:
    return {
        (source.value, target.value) for source, targets in table.items() for target in targets
    }


def test_the_state_machine_is_the_one_in_the_code(root):
    """R31"""
    text = (root / "docs/state-machine.md").read_text()
    listed = {(row[0], row[1]) for row in table_rows(text, "Moves")}
    by_retry = {(row[0], row[1]) for row in table_rows(text, "Moves by an explicit retry")}
    drawn = set(re.findall(r"^    (\w+) --> (\w+)", text, re.MULTILINE))
    assert listed == moves(states.MOVES)
    assert by_retry == moves(states.RETRY_MOVES)
    assert drawn == moves(states.MOVES)


def test_every_setting_is_documented(root):
    text = (root / "docs/configuration.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
    documented = {name: default.strip().strip("`") for name, default in listed if name.islower()}
    fields = {field.name: field.default for field in dataclasses.fields(settings.Settings)}
    assert sorted(documented) == sorted(fields)
    wrong = {
        name: (documented[name], default)
        for name, default in fields.items()
        if documented[name] != as_written(name, default)
    }
    assert not wrong


def as_written(name: str, default: object) -> str:
    if name == "port_range":
        return "{}-{}".format(*default)
    if default is None:
        return "all"
    if default in ("", ()):
        return "empty"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ", ".join(as_written("", item) for item in default)
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_requirement_rows_are_complete(root):
    table = requirements_table(root)
    rows = table.documented_rows((root / "docs/requirements.md").read_text())
    wanted = [*range(1, 10), *range(10, 28), *range(30, 41), *range(41, 45), *range(50, 57)]
    assert list(rows) == [f"R{number}" for number in wanted]
    assert {release for _, release in rows.values()} == {"0.1", "later"}


def test_tests_name_only_documented_rows(root):
    table = requirements_table(root)
    rows = table.documented_rows((root / "docs/requirements.md").read_text())
    assert {row for row, _ in table.tests_naming_rows(root / "tests")} <= set(rows)


def requirements_table(root):
    spec = importlib.util.spec_from_file_location(
        "requirements_table", root / "scripts/requirements_table.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_use_the_words_of_the_glossary(root):
    rows = re.findall(
        r"^\| ([\w-]+) \| [^|]+ \| ([^|]*) \|$",
        (root / "docs/glossary.md").read_text(),
        re.MULTILINE,
    )
    avoided = (
        {word.strip() for _, words in rows for word in words.split(",")}
        - {"", "not"}
        - OTHERWISE_USED
    )
    assert avoided
    wrong = []
    for path in (root / "src/runyard").rglob("*.py"):
        names = [path.stem, *re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)]
        for name in names:
            parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+", name)}
            if parts & avoided:
                wrong.append(f"{path.relative_to(root)}: {name}")
    assert not wrong


def test_make_targets_named_in_documents_exist(root, documents):
    targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    wrong = []
    for document in documents:
        for line in code_of(document.read_text()):
            if match := re.match(r"make((?: [a-z-]+)+)", line):
                wrong += [
                    f"{document.name}: {line}" for word in match[1].split() if word not in targets
                ]
    assert not wrong


@cache
def help_of(*command: str) -> str:
    runyard = Path(sys.executable).parent / "runyard"
    done = subprocess.run(
        [runyard, *command, "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": "200", "NO_COLOR": "1", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    )
    return done.stdout if done.returncode == 0 else ""


def test_commands_named_in_documents_exist(root, documents):
    """Each `runyard COMMAND --flag` of a document is known to the command's own help."""
    wrong = []
    for document in documents:
        for line in code_of(document.read_text()):
            match = re.match(r"(?:\S*/)?runyard ([a-z][a-z-]*)(.*)", line)
            if not match:
                continue
            command, rest = match[1], match[2].split(" -- ")[0].split("#")[0]
            known = help_of(command)
            if known and (below := re.match(r" ([a-z]+)", rest)):
                known += help_of(command, below[1])
            flags = re.findall(r"(?<=\s)--?[a-z][\w-]*", rest)
            if not known or [
                flag for flag in flags if not re.search(rf"(?<![\w-]){flag}(?![\w-])", known)
            ]:
                wrong.append(f"{document.relative_to(root)}: {line}")
    assert not wrong


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_opens_with_a_picture_and_two_commands(root, name):
    opening = "\n".join((root / name).read_text().splitlines()[:14])
    assert re.search(r"!\[[^]]+\]\(docs/images/now[-a-z]*\.png\)", opening)
    assert "make run" in opening
    assert "make test" in opening
