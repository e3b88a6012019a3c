"""Options that several commands share, and how words after `--` become the job's command."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from runyard.sdk.client import Client


class Parser(argparse.ArgumentParser):
    """argparse with our sentence when the usage is wrong."""

    def error(self, message: str) -> NoReturn:
        message += self._meant(message)
        self.exit(2, f"{self.prog}: {message}\nSee '{self.prog} --help'.\n")

    def _meant(self, message: str) -> str:
        """The flag that was probably meant by the first that is not known."""
        from runyard.domain.nearest_name import nearest

        begin = "unrecognized arguments: --"
        if not message.startswith(begin):
            return ""
        word = message.removeprefix(begin).split()[0].partition("=")[0]
        known = {flag[2:] for flag in self._option_string_actions if flag.startswith("--")}
        near = nearest(word, sorted(known), alike=0.65)
        return f" (did you mean --{near}?)" if near else ""


def parser(name: str, text: str) -> Parser:
    return Parser(
        prog=f"runyard {name}",
        description=text[0].upper() + text[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def parse(parser: Parser, words: list[str], *, takes_command: bool) -> argparse.Namespace:
    """With `takes_command`, everything after the first `--` is left alone as `command_words`."""
    if not takes_command:
        return parser.parse_args(words)
    cut = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:cut])
    rest = words[cut + 1 :]
    before: list[str] = args.command_words
    if before and cut < len(words):
        rest = [*before, "--", *rest]
    args.command_words = rest or before
    return args


def add_target(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which server")
    group.add_argument("--url", help="address of the server (RUNYARD_URL)")
    group.add_argument("--data-dir", metavar="DIR", help="local data directory (RUNYARD_DATA_DIR)")


def add_read(parser: argparse.ArgumentParser, *, ids: bool = False) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    if ids:
        parser.add_argument("-q", "--quiet", action="store_true", help="print ids only")
    add_target(parser)


def add_jobs(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "jobs",
        metavar="JOB",
        nargs="+" if required else "*",
        help="id (job-... or a number; 3-7 for a range of numbers)",
    )


def client(args: argparse.Namespace, **choice: Any) -> Client:
    return Client(url=args.url, data_dir=args.data_dir, **choice)


def job_ids(words: list[str]) -> list[str]:
    """Ids as typed, with ranges of numeric ids (3-7) and comma lists written out."""
    ids: list[str] = []
    for word in (part for text in words for part in text.split(",") if part):
        first, dash, last = word.partition("-")
        if dash and first.isdigit() and last.isdigit():
            ids += [str(number) for number in range(int(first), int(last) + 1)]
        else:
            ids.append(word)
    return list(dict.fromkeys(ids))
