"""The ray-bridge: `python -I bridge_main.py --data-dir DIR --address A --owner O ...`

The only process of the server's side that has Ray in it, because Ray ends the process it lives in
when a cluster is lost. It is to Ray what the keeper is to one machine: it is told the ids of
attempts whose folders exist, and everything that must outlive it is in those folders. It ends when
its standard input does.
"""

import os
import sys

if "runyard" not in sys.modules:
    # Only what stands below the server is importable: the interpreter may have nothing of ours.
    package = type(sys)("runyard")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["runyard"] = package

import argparse
import contextlib
import fcntl
import threading
import time
import traceback

from runyard.ray_bridge import refusals
from runyard.ray_bridge.bridge import Bridge
from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.refusals import Refused
from runyard.ray_bridge.talk import Talk

_LOCK_S = 20.0
LOCK_HELD = 3
REFUSED = 4


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--owner", required=True)
    parser.add_argument("--node-dir", default="")
    parser.add_argument("--allow-insecure", action="store_true")
    parser.add_argument("--shared", action="store_true")
    options = parser.parse_args(arguments)
    talk = Talk()
    if not _alone(f"{options.data_dir}/ray/bridge.lock"):
        return LOCK_HELD
    try:
        address = _join(options.address, options.allow_insecure)
        cluster = Cluster(options.owner, options.node_dir, shared=options.shared)
        bridge = Bridge(options.data_dir, cluster, address, talk)
    except Refused as refusal:
        talk.tell("refused", code=refusal.code, params=refusal.params)
        return REFUSED
    threading.Thread(target=bridge.sweep_for_ever, name="sweep", daemon=True).start()
    for line in talk.lines():
        try:
            bridge.obey(line)
        except Exception as error:
            traceback.print_exc()
            with contextlib.suppress(OSError):
                talk.answer(line, error=str(error))
    return 0


def _join(address: str, allow_insecure: bool) -> str:
    try:
        from runyard.ray_bridge import joining

        return joining.join(address, allow_insecure=allow_insecure)
    except ImportError as error:
        raise Refused(refusals.NOT_INSTALLED, python=sys.executable, why=str(error)) from error


def _alone(path: str) -> bool:
    """One bridge per data directory: an earlier one that still ends is waited for."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_S
    while time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # calls that wait for a cluster that is away do not keep it
