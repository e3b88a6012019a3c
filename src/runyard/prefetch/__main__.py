"""Start of the prefetch program, by file path: `python -I -S __main__.py PLAN_FILE`.

Signals keep their default: it may be ended at any instant, and the partial files stay good.
"""

import os
import sys

if "runyard" not in sys.modules:
    # Only this folder is importable: no site-packages, and nothing else of the package.
    package = type(sys)("runyard")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["runyard"] = package

import signal
import traceback

from runyard.prefetch import plan as plans
from runyard.prefetch import prefetching
from runyard.prefetch.progress import Tracker, print_line


def main(arguments: list[str]) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        (path,) = arguments
        plan = plans.read(path)
    except ValueError as error:
        said = str(error) if isinstance(error, plans.BadPlan) else "one argument: the plan file"
        print_line({"code": "bad_plan", "uri": None, "params": {"error": said}})
        return plans.EXIT_STATUS["bad_plan"]
    tracker = Tracker(plan.progress_file)
    prefetching.show_regularly(tracker)
    outcome = prefetching.prefetch(plan, tracker)
    tracker.end(outcome)
    print_line(outcome)
    return plans.EXIT_STATUS[outcome["code"]]


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except Exception as error:
        # Without the words of the error, which may hold an address with a password.
        traceback.print_tb(error.__traceback__)
        print(type(error).__name__, file=sys.stderr)
        print_line({"code": "internal", "uri": None, "params": {}})
        status = plans.EXIT_STATUS["internal"]
    # Threads that are still at it must not be waited for.
    sys.stderr.flush()
    os._exit(status)
