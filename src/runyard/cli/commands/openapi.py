"""runyard openapi: the description of the HTTP API, without a server."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write there (standard output)")


def run(args: argparse.Namespace) -> int:
    from runyard.api.app import described

    text = json.dumps(described(), indent=1, ensure_ascii=False) + "\n"
    if args.output:
        Path(args.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0
