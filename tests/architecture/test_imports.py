"""Import rules that import-linter's contracts in pyproject.toml cannot say."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import grimp
import pytest

# Who may name adapters of the stores, executors and probes: the composition root, and the one
# embedding class that is given a database address.
COMPOSITION = {
    "runyard.server",
    "runyard.embed.queue_manager",
    "runyard.embed.training_monitor",
    "runyard.embed.training_recovery",
}
PORTS = ("stores", "executors", "probes")
# Parts of an adapter folder that are no adapter: the port, and readers of its files.
SHARED = {
    "runyard.stores.base",
    "runyard.stores.base_alerts",
    "runyard.stores.base_logins",
    "runyard.stores.base_machines",
    "runyard.stores.base_metrics",
    "runyard.stores.base_notifications",
    "runyard.stores.base_repair",
    "runyard.stores.base_rules",
    "runyard.stores.base_watching",
    "runyard.executors.base",
    "runyard.probes.base",
    "runyard.probes.readings",
}
HEAVY = {
    "alembic",
    "asyncio",
    "fastapi",
    "loguru",
    "psutil",
    "pydantic",
    "pynvml",
    "rich",
    "sqlalchemy",
    "ssl",
    "starlette",
    "uvicorn",
}
SERVER_SIDE = {
    "runyard.server",
    "runyard.engine",
    "runyard.api",
    "runyard.stores",
    "runyard.executors",
    "runyard.wire",
}


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("runyard", cache_dir=None)


def run_python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules_after(statement: str) -> set[str]:
    return set(run_python("-c", f"{statement}; import sys; print(*sys.modules)").split())


def test_only_the_composition_root_names_adapters(graph):
    wrong = []
    for module in graph.modules:
        parts = module.split(".")
        if len(parts) < 3 or parts[1] not in PORTS or module in SHARED:
            continue
        folder = ".".join(parts[:2])
        for importer in graph.find_modules_that_directly_import(module):
            inside = importer.startswith(folder + ".")
            if not inside and importer not in COMPOSITION:
                wrong.append(f"{importer} imports {module}")
    assert not wrong


def test_only_its_command_imports_the_server(graph):
    importers = graph.find_modules_that_directly_import("runyard.server")
    assert {name for name in importers if not name.startswith("runyard.embed.")} <= {
        "runyard.cli.commands.server"
    }


def test_nothing_shipped_imports_the_contract_suites(graph):
    importers = {
        importer
        for module in graph.modules
        if module.startswith("runyard.testing")
        for importer in graph.find_modules_that_directly_import(module)
    }
    assert not {name for name in importers if not name.startswith("runyard.testing")}


@pytest.mark.parametrize("package", ["supervisor", "report", "prefetch", "preflight"])
def test_standard_library_only(root, package):
    """Without site-packages (-S) and without the environment (-I), as supervisors are started."""
    folder = root / "src" / "runyard" / package
    modules = sorted(
        ".".join(path.relative_to(root / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in folder.rglob("*.py")
    )
    program = (
        f"import sys, importlib; sys.path.insert(0, {str(root / 'src')!r})\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(*[name for name in sys.modules if name.startswith('runyard.')])"
    )
    seen = run_python("-I", "-S", "-B", "-c", program).split()
    assert not [name for name in seen if not name.startswith(f"runyard.{package}")]


def test_importing_runyard_loads_nothing_else():
    before = modules_after("pass")
    new = modules_after("import runyard") - before
    assert not {name for name in new if name.partition(".")[0] in HEAVY}
    assert not {name for name in new if name.startswith("runyard.")}


def test_client_commands_load_neither_the_server_nor_pydantic(root):
    """Client commands must start fast; each loads only what it uses."""
    commands = sorted((root / "src/runyard/cli/commands").glob("*.py"))
    names = [path.stem for path in commands if path.stem not in {"__init__", "server"}]
    assert names
    imports = "; ".join(
        f"import runyard.cli.commands.{name}"
        for name in ["__init__", *names]
        if name != "__init__"
    )
    loaded = modules_after(f"import runyard.cli.main; {imports}")
    assert not {
        name
        for name in loaded
        if name.partition(".")[0] in {"alembic", "fastapi", "pydantic", "sqlalchemy", "uvicorn"}
        or ".".join(name.split(".")[:2]) in SERVER_SIDE
    }


def test_the_public_names_are_declared_and_there():
    import runyard

    assert sorted(runyard.__all__) == list(runyard.__all__)
    for name in runyard.__all__:
        assert getattr(runyard, name) is not None


def test_every_dependency_is_bounded_below(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert not [need for need in project["dependencies"] if ">=" not in need]
