"""Start of the program that checks checkpoints, by file path: `python -I -S __main__.py`.

It reads one JSON object from standard input and prints one JSON line per path. It loads nothing
that is in a checkpoint, and gives way to everything else on the machine.
"""

import os
import sys

if "runyard" not in sys.modules:
    # Only this folder is importable: no site-packages, and nothing else of the package.
    own = os.path.dirname(os.path.abspath(__file__))
    for name, place in (("runyard", ""), ("runyard.probes", "probes")):
        package = type(sys)(name)
        package.__path__ = [os.path.join(os.path.dirname(os.path.dirname(own)), place)]
        sys.modules[name] = package

import json
import signal

from runyard.probes.checkpoint_check import checking, manifests

_LEAST_NICE = 15
_SLACK_S = 5.0


def main() -> int:
    os.nice(_LEAST_NICE)
    asked = json.load(sys.stdin)
    seconds = float(asked["seconds"])
    # Whatever hangs (a dead network disk), the program ends.
    signal.setitimer(signal.ITIMER_REAL, seconds + _SLACK_S)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    clock = manifests.Clock(seconds)
    settle_s = float(asked.get("settle_s", 0.0))
    for path in asked["paths"]:
        found = checking.check(path, settle_s=settle_s, clock=clock)
        print(json.dumps(vars(found)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
