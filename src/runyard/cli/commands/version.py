"""runyard version."""

from __future__ import annotations

import argparse

from runyard import __version__


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.json:
        import json
        import platform

        print(json.dumps({"version": __version__, "python": platform.python_version()}))
    else:
        print(f"runyard {__version__}")
    return 0
