"""Entry of the command line: finds the command, loads only its file, words its errors."""

from __future__ import annotations

import sys

from runyard.cli import catalog, exit_codes


def main(argv: list[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        return _help(words[1:])
    if words[0] in ("-V", "--version"):
        words = ["version", *words[1:]]
    name = catalog.resolve(words[0], words[1:])
    if name is None:
        return _unknown(words[0])
    return _guarded(name, words[1:])


def _help(words: list[str]) -> int:
    name = catalog.resolve(words[0], []) if words else None
    if name is not None:
        return _guarded(name, ["--help"])
    print(catalog.usage())
    return 0


def _unknown(word: str) -> int:
    from runyard.domain.nearest_name import nearest

    near = nearest(word, [*catalog.COMMANDS, *catalog.ALIASES])
    hint = f" Did you mean '{near}'?" if near else ""
    if word.startswith("-"):
        told = f"the command comes first, then '{word}', as in: runyard ls --url URL."
    else:
        told = f"there is no command '{word}'.{hint}"
    print(f"runyard: {told}", file=sys.stderr)
    print("See 'runyard --help'.", file=sys.stderr)
    return exit_codes.USAGE


def _guarded(name: str, words: list[str]) -> int:
    """Run one command; what is expected to go wrong is told in words, never as a traceback."""
    try:
        code = _run(name, words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return exit_codes.BROKEN_PIPE
    except SystemExit as leaving:  # argparse: wrong usage, or --help
        return leaving.code if isinstance(leaving.code, int) else exit_codes.FAILED
    except Exception as error:
        from runyard.cli import complaints

        told = complaints.tell(error)
        if told is None:
            raise
        return told


def _run(name: str, words: list[str]) -> int:
    import importlib

    from runyard.cli import options

    command = importlib.import_module(f"runyard.cli.commands.{name}")
    parser = options.parser(name, catalog.COMMANDS[name])
    command.configure(parser)
    args = options.parse(parser, words, takes_command=getattr(command, "TAKES_COMMAND", False))
    return int(command.run(args))


def _silence_stdout() -> None:
    """The reader of our pipe is gone; keep the interpreter from complaining when it flushes."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
