"""runyard hold: keep waiting jobs from starting."""

from __future__ import annotations

import argparse

from runyard.cli import changes, options

configure = changes.configure


def run(args: argparse.Namespace) -> int:
    return changes.each(args, options.client(args).hold, "held")
