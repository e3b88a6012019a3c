"""runyard doctor: is this machine fit to run jobs, and does the server answer?"""

from __future__ import annotations

import argparse

from runyard.cli import doctor_checks, exit_codes, options, tables
from runyard.cli.doctor_check import Check


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exits with 1 when a check failed; warnings do not count."
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    from runyard import settings

    chosen = settings.load({"data_dir": args.data_dir})
    client = options.client(args)
    found = []
    for check in doctor_checks.all_of(
        chosen.data_dir, client, chosen.database_url, chosen.docker_host
    ):
        found.append(check)
        if not args.json:
            _print(check)
    failed = any(check.level == "fail" for check in found)
    if args.json:
        rows = [check._asdict() for check in found]
        tables.print_json({"ok": not failed, "checks": rows})
    return exit_codes.FAILED if failed else exit_codes.OK


def _print(check: Check) -> None:
    colours = {"ok": "32", "warn": "33", "fail": "31"}
    level = f"{check.level:<4}"
    if tables.coloured():
        level = f"\x1b[{colours.get(check.level, '0')}m{level}\x1b[0m"
    print(f"{level}  {check.name}: {check.seen}")
    if check.advice:
        print(f"      -> {check.advice}")
