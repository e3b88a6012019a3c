"""runyard retry: run ended jobs again."""

from __future__ import annotations

import argparse

from runyard.cli import changes, options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="do not resume from a checkpoint")
    changes.configure(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    return changes.each(args, lambda job_id: client.retry(job_id, fresh=args.fresh), "retried")
