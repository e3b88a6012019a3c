"""What users build on is written down in surface/; a change of it shows as a difference in review.

After a wanted change: UPDATE_SURFACE=1 pytest tests/architecture/test_public_surface.py
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import runyard
from runyard.cli import catalog

SURFACE = Path(__file__).parent / "surface"


def compare(name: str, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_SURFACE"):
        (SURFACE / name).write_text(text)
    assert text == (SURFACE / name).read_text()


def test_commands_and_their_flags():
    lines = []
    for command in sorted(catalog.COMMANDS):
        said = subprocess.run(
            [Path(sys.executable).parent / "runyard", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={"COLUMNS": "200", "PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        ).stdout
        flags = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", said)
        lines.append(" ".join([command, *sorted(set(flags))]))
    compare("commands.txt", lines)


def test_public_python_names():
    lines = []
    for name in runyard.__all__:
        value = getattr(runyard, name)
        lines.append(name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            public = [member for member in dir(value) if not member.startswith("_")]
            lines += [f"  {name}.{member}" for member in public]
    compare("python.txt", lines)
