"""What `import runyard` offers, and what it costs."""

import subprocess
import sys

import runyard


def test_all_is_sorted_and_real():
    assert runyard.__all__ == sorted(runyard.__all__)
    for name in runyard.__all__:
        assert getattr(runyard, name) is not None
    offered = {name for name in vars(runyard) if name[0].isupper()} - {"TYPE_CHECKING"}
    assert offered <= set(runyard.__all__)


def test_an_unknown_name_is_refused():
    assert not hasattr(runyard, "Nonsense")


def _modules_after(code: str) -> set[str]:
    printing = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", printing], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else():
    assert _modules_after("import runyard") == {"runyard"}


def test_the_client_imports_the_standard_library_only():
    third_party = {
        "pydantic",
        "yaml",
        "rich",
        "fastapi",
        "sqlalchemy",
        "psutil",
        "orjson",
        "typer",
    }
    found = _modules_after("import runyard\nrunyard.Client('http://127.0.0.1:1', 'k')")
    assert not third_party & {name.split(".")[0] for name in found}
    assert not {name for name in found if name.startswith(("runyard.engine", "runyard.wire"))}
