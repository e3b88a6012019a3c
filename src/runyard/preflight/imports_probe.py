"""Run by the interpreter of a job, whatever its version from 3.7 on: does what it is about to run
compile, and can what it imports be found. Nothing of the job is executed.

`python FLAGS imports_probe.py JSON`; the answer is the last line that begins with MARK.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import sys
import time
import warnings
from typing import Any

MARK = "RUNYARD-PREFLIGHT "
_MOST_FILES = 200
_MOST_SECONDS = 10.0
# After code that touches one of these, what can be imported is known only by running it.
_BENDING_NAMES = {"exec", "eval", "__import__", "execfile", "importlib", "site", "subprocess"}
_BENDING_NAMES |= {"pip", "runpy", "pkg_resources", "pkgutil", "zipimport"}
_BENDING_OF_SYS = {"path", "meta_path", "path_hooks", "modules", "path_importer_cache"}
_BENDING_CALLS = {"system", "popen", "addsitedir", "import_module", "run_path", "execv", "execvp"}
_TORCH_BUILT_FOR = re.compile(
    r"^(cuda|hip)\s*(?::[^=]+)?=\s*(?:None|['\"]([^'\"]+)['\"])", re.MULTILINE
)


class Scan:
    """Follows the imports that certainly happen: those of a file's outermost statements."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.certain = True
        self.missing: list[dict[str, Any]] = []
        self.broken: list[dict[str, Any]] = []
        self.seen: dict[str, Any] = {}
        self.files = 0
        self.until = time.monotonic() + _MOST_SECONDS

    def source(self, text: str | bytes, path: str) -> None:
        """`text` is the content of `path`, or code that was given on the command line."""
        self.files += 1
        if self.files > _MOST_FILES or time.monotonic() > self.until:
            return
        try:
            tree: Any = compile(text, path, "exec", ast.PyCF_ONLY_AST, True)
            compile(tree, path, "exec", 0, True)
        except SyntaxError as error:
            self.broken.append(_syntax(error, path, self.certain))
            return
        except (ValueError, OverflowError) as error:
            message = str(error)
            self.broken.append(
                {"path": path, "line": None, "message": message, "certain": self.certain}
            )
            return
        except (MemoryError, RecursionError):
            return
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imported(node, path)
            elif _bends(node):
                self.certain = False

    def imported(self, node: ast.Import | ast.ImportFrom, path: str) -> None:
        if isinstance(node, ast.ImportFrom):
            if node.level or not node.module or node.module == "__future__":
                return
            names = [node.module]
        else:
            names = [alias.name for alias in node.names]
        for name in names:
            self.name(name.partition(".")[0], path, node.lineno)
            if name.partition(".")[0] in _BENDING_NAMES - {"subprocess", "importlib"}:
                self.certain = False

    def name(self, top: str, path: str, line: int | None) -> None:
        if top in self.seen or top in sys.builtin_module_names or top == "__main__":
            return
        try:
            spec: Any = importlib.util.find_spec(top)
        except Exception:  # a finder of somebody else's
            spec = False
        self.seen[top] = spec
        if spec is None:
            found = {"name": top, "path": path, "line": line, "certain": self.certain}
            self.missing.append(found)
        elif spec and self.is_local(spec.origin):
            try:
                with open(spec.origin, "rb") as file:
                    text = file.read()
            except OSError:
                return
            self.source(text, spec.origin)

    def is_local(self, origin: str | None) -> bool:
        if not origin or not origin.endswith(".py") or "-packages" in origin:
            return False
        if os.path.realpath(origin).startswith(os.path.realpath(os.path.dirname(ast.__file__))):
            return False
        return os.path.realpath(origin).startswith(self.folder + os.sep)


def _syntax(error: SyntaxError, path: str, certain: bool) -> dict[str, Any]:
    return {
        "path": error.filename or path,
        "line": error.lineno,
        "message": error.msg,
        "text": (error.text or "").strip()[:200],
        "certain": certain,
    }


def _bends(node: ast.AST) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in _BENDING_NAMES:
            return True
        if isinstance(part, ast.Attribute):
            if part.attr in _BENDING_CALLS:
                return True
            is_of_sys = isinstance(part.value, ast.Name) and part.value.id == "sys"
            if is_of_sys and part.attr in _BENDING_OF_SYS:
                return True
    return False


def _put_first(folder: str) -> None:
    """Where the interpreter itself would have put it."""
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return
    sys.path[0] = folder


def _torch(scan: Scan) -> dict[str, str] | None:
    """Which CUDA its torch was built for, read without importing it."""
    spec = scan.seen.get("torch")
    for folder in (spec and spec.submodule_search_locations) or ():
        try:
            with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError):
            continue
        return dict(_TORCH_BUILT_FOR.findall(text))
    return None


def _look(target: dict[str, str]) -> dict[str, Any]:
    kind, value = target["kind"], target["value"]
    _put_first(target["folder"])
    scan = Scan(target["folder"])
    if kind == "module":
        scan.name(value.partition(".")[0], "", None)
    elif kind == "code":
        scan.source(value, "<string>")
    else:
        with open(value, "rb") as file:
            scan.source(file.read(), value)
    return {"missing": scan.missing, "broken": scan.broken, "torch": _torch(scan)}


def main() -> None:
    warnings.simplefilter("ignore")
    asked = json.loads(sys.argv[1])
    told: dict[str, Any] = {"version": list(sys.version_info[:3]), "executable": sys.executable}
    told["targets"] = [_look(target) for target in asked]
    sys.stdout.write("\n" + MARK + json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
