"""Start of the preflight program, by file path: `python -I -S __main__.py PLAN_FILE`.

Signals keep their default: it may be ended at any instant.
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

from runyard.preflight import checking
from runyard.preflight import plan as plans


def main(arguments: list[str]) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    (path,) = arguments
    plan = plans.read(path)
    report = checking.report(plan)
    plans.write_report(report, plan.report_file)
    for one in report["checks"]:
        print(one["verdict"], one["check"], one["code"], flush=True)
    return plans.FAILED if report["verdict"] == "fail" else plans.PASSED


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except Exception:
        # A fault of ours says nothing about the job, which may start.
        traceback.print_exc()
        status = plans.PASSED
    sys.exit(status)
