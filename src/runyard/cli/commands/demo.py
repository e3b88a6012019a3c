"""runyard demo: a small real training job, submitted and followed."""

from __future__ import annotations

import argparse
import os
import sys

from runyard.cli import amounts, options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-d", "--detach", action="store_true", help="submit, print the id, leave")
    parser.add_argument("-q", "--quiet", action="store_true", help="with -d: print the id only")
    parser.add_argument("--json", action="store_true", help="with -d: print the answer as JSON")
    parser.add_argument("--time", default="60s", metavar="SPAN", help="about how long (60s)")
    options.add_target(parser)


def run(args: argparse.Namespace) -> int:
    from runyard.cli import demo_train

    seconds = amounts.seconds(args.time, "--time")
    job: dict[str, object] = {
        "name": "demo",
        "description": "A small neural network learns two spirals, in pure Python.",
        "command": [
            sys.executable,
            os.path.abspath(demo_train.__file__),
            f"--seconds={seconds:g}",
        ],
        "cpu_cores": 1,
        "memory_gb": 0.25,
        "gpu_count": 0,
        "max_retries": 0,
        "grace_s": 5,
        "labels": {"demo": "true"},
    }
    args.idempotency_key = None
    if args.detach:
        from runyard.cli.commands import submit

        return submit.submit(args, [job])
    from runyard.cli.commands.run import follow_new

    return follow_new(args, job)
