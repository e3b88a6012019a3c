"""The interpreter of a job starts, what it runs compiles, and what that imports can be found."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runyard.preflight import executables, gpu_driver, imports_probe
from runyard.preflight.command_words import PythonRun, Target
from runyard.preflight.findings import Finding, failed, passed, warned

_NAMED = 5  # missing modules that are told one by one
# Would make the interpreter wait for a person, or tell us what it does all the time.
_LEFT_OUT = ("PYTHONINSPECT", "PYTHONVERBOSE", "PYTHONSTARTUP")


class _DoesNotAnswer(Exception):
    """How the interpreter ended instead of answering."""

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self.params = params


def check(
    run: PythonRun, env: Mapping[str, str], cwd: str, timeout_s: float, wants_gpu: bool
) -> list[Finding]:
    interpreter = executables.find(run.interpreter, env, cwd)
    if interpreter is None:
        return [failed("interpreter", "executable_missing", name=run.interpreter)]
    missing = [
        one for one in run.targets if one.kind == "script" and not os.path.exists(one.value)
    ]
    if missing:
        return [failed("script", "script_missing", path=missing[0].value)]
    targets = [
        {"kind": one.kind, "value": one.value, "folder": _first_on_path(one, cwd)}
        for one in run.targets
        if one.kind != "script" or _is_source(one.value)
    ]
    env = {name: value for name, value in env.items() if name not in _LEFT_OUT}
    try:
        told = _ask(interpreter, run.flags, targets, env, cwd, timeout_s)
    except subprocess.TimeoutExpired:
        # It may be a cold network file system: not proof enough to refuse the job.
        return [warned("interpreter", "interpreter_slow", path=interpreter, seconds=timeout_s)]
    except _DoesNotAnswer as answer:
        return [failed("interpreter", "interpreter_broken", path=interpreter, **answer.params)]
    if told is None:
        return [passed("interpreter", path=interpreter)]
    version = ".".join(map(str, told["version"]))
    found = [passed("interpreter", path=interpreter, version=version)]
    found += _script(told, run.targets)
    found += _imports(told, interpreter)
    built = next((one["torch"] for one in told["targets"] if one["torch"]), None)
    if wants_gpu and built is not None:
        found.append(gpu_driver.fits(built))
    return found


def _first_on_path(target: Target, cwd: str) -> str:
    """What the interpreter puts first on its path of modules."""
    if target.kind == "script":
        return os.path.dirname(os.path.realpath(target.value))
    return cwd


def _is_source(path: str) -> bool:
    """Not a folder, an archive or compiled code, all of which an interpreter takes as well."""
    if not os.path.isfile(path) or path.endswith(".pyc"):
        return False
    try:
        with open(path, "rb") as file:
            return not file.read(4).startswith(b"PK\3\4")
    except OSError:
        return False


def _ask(
    interpreter: str,
    flags: tuple[str, ...],
    targets: list[dict[str, str]],
    env: Mapping[str, str],
    cwd: str,
    timeout_s: float,
) -> dict[str, Any] | None:
    """None when it starts, but cannot answer our questions: it is too old."""
    probe = str(Path(imports_probe.__file__).resolve())
    argv = [interpreter, *flags, probe, json.dumps(targets)]
    done = _run(argv, env, cwd, timeout_s)
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(imports_probe.MARK):
            return json.loads(line[len(imports_probe.MARK) :])  # type: ignore[no-any-return]
    plain = _run([interpreter, *flags, "-c", "pass"], env, cwd, timeout_s)
    if plain.returncode == 0:
        return None
    lines = plain.stderr.decode(errors="replace").strip().splitlines()
    said = lines[-1][:300] if lines else ""
    code = plain.returncode
    raise _DoesNotAnswer(
        exit_code=code if code >= 0 else None, signal=-code if code < 0 else None, said=said
    )


def _run(
    argv: list[str], env: Mapping[str, str], cwd: str, timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            argv,
            env=dict(env),
            cwd=cwd if os.path.isdir(cwd) else "/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        raise _DoesNotAnswer(exit_code=None, signal=None, said=error.strerror) from error


def _script(told: dict[str, Any], targets: tuple[Target, ...]) -> list[Finding]:
    broken = [one for target in told["targets"] for one in target["broken"]]
    for one in broken:
        certain = one.pop("certain")
        made = failed if certain else warned
        return [made("script", "syntax_error", **one)]
    scripts = [target.value for target in targets if target.kind == "script"]
    return [passed("script", path=scripts[-1])] if scripts else []


def _imports(told: dict[str, Any], interpreter: str) -> list[Finding]:
    missing = [one for target in told["targets"] for one in target["missing"]]
    certain = [one for one in missing if one["certain"]]
    if certain:
        return [failed("imports", "module_missing", **_named(certain, interpreter))]
    if missing:
        return [warned("imports", "module_maybe_missing", **_named(missing, interpreter))]
    return [passed("imports")] if told["targets"] else []


def _named(missing: list[dict[str, Any]], interpreter: str) -> dict[str, Any]:
    first = missing[0]
    names = list(dict.fromkeys(one["name"] for one in missing))
    return {
        "name": first["name"],
        "path": first["path"],
        "line": first["line"],
        "interpreter": interpreter,
        "names": names[:_NAMED],
        "count": len(names),
    }
