"""runyard completion: a script for bash, zsh or fish that completes commands, options and ids."""

from __future__ import annotations

import argparse

from runyard.cli import catalog

_BASH = """\
_runyard() {
    local IFS=$'\\n'
    COMPREPLY=($(runyard completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _runyard runyard
"""

_ZSH = """\
#compdef runyard
_runyard() {
    local -a found
    found=("${(@f)$(runyard completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _runyard runyard
"""

_FISH = """\
function __runyard_words
    set -l typed (commandline -opc) (commandline -ct)
    runyard completion words $typed[2..-1] 2>/dev/null
end
complete -c runyard -a '(__runyard_words)'
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
# The commands whose arguments are ids of jobs, and which jobs make sense there.
_JOBS = {
    "cancel": ("pending", "scheduled", "running", "retrying"),
    "explain": (),
    "hold": ("pending", "retrying"),
    "logs": (),
    "release": ("pending",),
    "retry": ("completed", "failed", "cancelled"),
    "show": (),
    "wait": ("pending", "scheduled", "running", "retrying", "cancelling"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        'bash:  eval "$(runyard completion bash)"            in ~/.bashrc\n'
        'zsh:   eval "$(runyard completion zsh)"             in ~/.zshrc, after compinit\n'
        "fish:  runyard completion fish | source             in ~/.config/fish/config.fish"
    )
    parser.add_argument("shell", choices=(*_SCRIPTS, "words"), metavar="bash|zsh|fish")
    parser.add_argument("typed", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.shell != "words":
        print(_SCRIPTS[args.shell], end="")
        return 0
    for word in _words(args.typed or [""]):
        print(word)
    return 0


def _words(typed: list[str]) -> list[str]:
    *before, last = typed
    if not before:
        return [name for name in catalog.COMMANDS if name.startswith(last)]
    if "--" in before:
        return []  # the job's own command: the shell completes files
    name = catalog.resolve(before[0], before[1:])
    if name is None:
        return []
    if last.startswith("-"):
        return [flag for flag in _flags(name) if flag.startswith(last)]
    return [job for job in _jobs(name) if job.startswith(last)] if name in _JOBS else []


def _flags(name: str) -> list[str]:
    import importlib

    from runyard.cli import options

    parser = options.parser(name, catalog.COMMANDS[name])
    importlib.import_module(f"runyard.cli.commands.{name}").configure(parser)
    flags = [flag for action in parser._actions for flag in action.option_strings]
    return sorted(flag for flag in flags if flag.startswith("--"))


def _jobs(name: str) -> list[str]:
    from runyard.sdk import errors
    from runyard.sdk.client import Client

    try:
        # A key pressed for completion must not hang on a server that is away.
        client = Client(timeout=1.0)
        return [job.id for job in client.jobs(status=_JOBS[name], limit=50)]
    except errors.RunyardError:
        return []
