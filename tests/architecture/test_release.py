"""Version, change log and lock files agree and can be used anywhere."""

from __future__ import annotations

import re
import tomllib

import pytest

import runyard

LOCKS = ["requirements.lock", "requirements-build.lock", "requirements-dev.lock"]


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9][\w.-]*)==([^ ;\\]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_lock_files_name_no_index_and_hash_everything(root, name):
    text = (root / name).read_text()
    assert not re.search(
        r"https?:|file:|--index|--find-links|--extra-index|^-e |^#|@ ", text, re.MULTILINE
    )
    blocks = re.split(r"\n(?=\S)", text.strip())
    assert blocks
    assert not [block for block in blocks if "==" not in block or "--hash=sha256:" not in block]


def test_lock_files_agree(root):
    """What is tested is what is run."""
    run, dev = (
        pins((root / name).read_text()) for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert {name: version for name, version in run.items() if dev.get(name) != version} == {}


def test_every_dependency_is_locked(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    locked = pins((root / "requirements-dev.lock").read_text())
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["postgres"], *extras["dev"]]
    names = [re.match(r"[\w.-]+", need).group().lower().replace("_", "-") for need in wanted]
    assert [name for name in names if name not in locked] == []


def test_every_extra_is_used_and_named_in_the_documents(root):
    """Whoever installs one expects that something changes."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = {
        name: needs for name, needs in project["optional-dependencies"].items() if name != "dev"
    }
    code = [*root.glob("src/**/*.py"), *root.glob("examples/**/*.py")]
    source = "\n".join(path.read_text() for path in code)
    pages = "\n".join(path.read_text() for path in root.glob("docs/**/*.md"))
    for name, needs in extras.items():
        for need in needs:
            package = re.match(r"[\w-]+", need).group()
            imported = rf"^\s*(?:import|from) {package}\b"
            started = f'"{package}"'
            assert re.search(imported, source, re.MULTILINE) or started in source, package
        assert f"[{name}]" in pages or f"extra `{name}`" in pages, name


def test_the_change_log_knows_this_version(root):
    text = (root / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", text, re.MULTILINE)
    assert versions
    assert versions[0] == runyard.__version__
