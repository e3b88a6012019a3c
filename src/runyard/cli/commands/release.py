"""runyard release: let held jobs start."""

from __future__ import annotations

import argparse

from runyard.cli import changes, options

configure = changes.configure


def run(args: argparse.Namespace) -> int:
    return changes.each(args, options.client(args).release, "released")
