"""What a job's command really runs, where that can be told without running it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

_SHELLS = frozenset({"sh", "bash", "dash"})
# A text with any of these needs a shell to be understood; better no answer than a wrong one.
_RICH = re.compile(r"[;&|<>$`()*?\[\]{}~#!\n\\]")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PYTHON = re.compile(r"python([0-9.]*)|pypy3?")
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_LAUNCHER_MODULES = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}
)
# Those that decide what can be imported; the others change how it runs.
_KEPT_FLAGS = "EIPsS"
_PLAIN_FLAGS = "bBdEiIOPqsSuvx"


@dataclass(frozen=True)
class Command:
    """`words` are empty where the command is a program for the shell."""

    words: tuple[str, ...]
    by_shell: bool = False
    assignments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """Python code that the interpreter is asked to run."""

    kind: str  # script, code, module
    value: str  # the script's absolute path, the code, the module's name


@dataclass(frozen=True)
class PythonRun:
    interpreter: str
    flags: tuple[str, ...]
    targets: tuple[Target, ...]


def understood(argv: Sequence[str]) -> Command:
    if len(argv) == 3 and os.path.basename(argv[0]) in _SHELLS and argv[1] == "-c":
        return _of_shell(argv[2])
    return Command(tuple(argv))


def _of_shell(text: str) -> Command:
    if _RICH.search(text):
        return Command((), by_shell=True)
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed: the shell will say so
        return Command((), by_shell=True)
    assignments = {}
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        assignments[found[1]] = found[2]
        words.pop(0)
    if words[:1] == ["exec"]:
        words.pop(0)
    return Command(tuple(words), True, assignments)


def is_python(name: str) -> bool:
    return _PYTHON.fullmatch(os.path.basename(name)) is not None


def python_run(words: Sequence[str], executable: str, cwd: str) -> PythonRun | None:
    """None for what is no Python, as far as can be seen."""
    if is_python(words[0]):
        return _interpreter_run(executable, words[1:], cwd)
    interpreter = _shebang(executable)
    if interpreter is None or not is_python(interpreter[0]):
        return None
    targets = [Target("script", os.path.abspath(executable))]
    if os.path.basename(words[0]) in _LAUNCHERS:
        targets += _launched(words[1:], cwd)
    flags = tuple(flag for flag in interpreter[1:] if _is_kept(flag))
    return PythonRun(interpreter[0], flags, tuple(targets))


def _interpreter_run(interpreter: str, words: Sequence[str], cwd: str) -> PythonRun:
    flags: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-c", "-m"):
            targets = _given(word, rest, cwd)
            return PythonRun(interpreter, tuple(flags), targets)
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            rest = rest[1:]
        elif word.startswith(("-W", "-X")):
            continue
        elif len(word) > 1 and word[0] == "-" and set(word[1:]) <= set(_PLAIN_FLAGS):
            flags += [f"-{flag}" for flag in word[1:] if flag in _KEPT_FLAGS]
        elif word.startswith("-"):  # standard input, or an option that we do not know
            break
        else:
            path = os.path.join(cwd, word)
            return PythonRun(interpreter, tuple(flags), (Target("script", path),))
    return PythonRun(interpreter, tuple(flags), ())


def _given(option: str, rest: Sequence[str], cwd: str) -> tuple[Target, ...]:
    if not rest:
        return ()
    if option == "-c":
        return (Target("code", rest[0]),)
    launched = _launched(rest[1:], cwd) if rest[0] in _LAUNCHER_MODULES else []
    return (Target("module", rest[0]), *launched)


def _launched(words: Sequence[str], cwd: str) -> list[Target]:
    """The script that a launcher of several processes starts: the first word that is one."""
    if "--no-python" in words:
        return []
    script = next((word for word in words if word.endswith(".py") and word[0] != "-"), None)
    return [] if script is None else [Target("script", os.path.join(cwd, script))]


def _shebang(path: str) -> list[str] | None:
    try:
        with open(path, "rb") as file:
            line = file.readline(512)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    words = line[2:].decode(errors="replace").split()
    if words and os.path.basename(words[0]) == "env":
        words = words[1:]
        if words[:1] == ["-S"]:
            words = words[1:]
    return words or None


def _is_kept(flag: str) -> bool:
    return len(flag) > 1 and flag[0] == "-" and set(flag[1:]) <= set(_KEPT_FLAGS)
