"""The import contracts hold, and each breaks when what it forbids is done."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FORBIDDEN = [
    ("stores/base.py", "import runyard.engine.yard", "imports point down"),
    ("new_folder/__init__.py", "", "imports point down"),
    ("domain/states.py", "import time", "the domain is pure"),
    ("domain/states.py", "def hidden():\n    import subprocess", "the domain is pure"),
    ("supervisor/journal.py", "import psutil", "the supervisor stands alone"),
    ("sdk/client.py", "import runyard.engine.hub", "the sdk and the wire know nothing"),
    (
        "engine/yard.py",
        "import runyard.executors.local",
        "only the composition root names adapters",
    ),
    ("api/app.py", "import runyard.stores.tables", "only the composition root names adapters"),
    ("stores/tables.py", "import runyard.probes.base", "imports point down"),
    (
        "cli/commands/ls.py",
        "import runyard.server",
        "only its command and embedding import the server",
    ),
    ("engine/yard.py", "import runyard.testing", "the contract suites are for tests"),
    ("cli/commands/ls.py", "import pydantic", "client commands reach a server by HTTP only"),
]


def broken_contracts(folder: Path, source: Path) -> set[str]:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    return set(re.findall(r"^(.+) BROKEN", done.stdout, re.MULTILINE))


@pytest.fixture
def copy(root, tmp_path) -> Path:
    """A copy of the package that a test may spoil."""
    shutil.copy(root / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "src", tmp_path / "src", ignore=ignored)
    return tmp_path


def test_import_contracts_hold(copy):
    assert broken_contracts(copy, copy / "src") == set()


@pytest.mark.parametrize(("file", "line", "contract"), FORBIDDEN)
def test_a_forbidden_import_breaks_its_contract(copy, file, line, contract):
    path = copy / "src" / "runyard" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + f"\n{line}\n")
    broken = broken_contracts(copy, copy / "src")
    assert [name for name in broken if name.startswith(contract)]
