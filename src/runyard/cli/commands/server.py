"""runyard server: the flags of the server; everything else is server.py's."""

from __future__ import annotations

import argparse
import sys


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Every flag is also a setting: RUNYARD_MAX_CONCURRENT in the environment, max_concurrent\n"
        "in runyard.toml. Flags override the environment, which overrides the file."
    )
    parser.set_defaults(**dict.fromkeys(_SETTINGS))
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (8765)")
    parser.add_argument("--data-dir", metavar="DIR", help="where everything is kept (~/.runyard)")
    parser.add_argument("--database-url", metavar="URL", help="postgresql://... instead of SQLite")
    parser.add_argument(
        "--executor", dest="executors", metavar="NAMES", help="local, docker, ray (local)"
    )
    parser.add_argument(
        "--ray-address",
        metavar="auto|HOST:PORT",
        help="the cluster that --executor ray joins (one of its own)",
    )
    parser.add_argument("--max-concurrent", type=int, metavar="N", help="jobs at once (2)")
    parser.add_argument("--gpus", metavar="0,1,2,3", help="the GPUs jobs may get (all)")
    parser.add_argument("--port-range", metavar="FIRST-LAST", help="ports for jobs (38000-38199)")
    parser.add_argument(
        "--on-shutdown", choices=("keep", "stop"), help="what becomes of jobs (stop)"
    )
    parser.add_argument("--log-level", metavar="LEVEL", type=str.upper, help="(INFO)")
    parser.add_argument("--config", metavar="FILE", help="runyard.toml to read")


_SETTINGS = (
    "host",
    "port",
    "data_dir",
    "database_url",
    "executors",
    "ray_address",
    "max_concurrent",
    "gpus",
    "port_range",
    "on_shutdown",
    "log_level",
    "config",
)


def run(args: argparse.Namespace) -> int:
    from runyard.supervisor import init

    again = [sys.executable, *sys.orig_argv[1:]]
    if init.is_needed():
        return init.run(again)
    from runyard import server

    given = {name: getattr(args, name) for name in _SETTINGS}
    overrides: dict[str, object] = {
        name: value for name, value in given.items() if value is not None
    }
    sys.exit(server.serve(overrides, again))
