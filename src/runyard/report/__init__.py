"""What training code imports: `from runyard import report`, then `report(step=10, loss=0.3)`.

The standard library is all it needs, and it never fails or blocks a training: it appends lines to
a file, which the server reads when it can (docs/guides/report.md).
"""

import sys
import types

from runyard.report.atomic_save import save_checkpoint
from runyard.report.given import batch_scale, params, resume_from
from runyard.report.metrics_file import dropped
from runyard.report.stopping import should_stop
from runyard.report.telling import checkpoint, report

__all__ = [
    "batch_scale",
    "checkpoint",
    "dropped",
    "params",
    "report",
    "resume_from",
    "save_checkpoint",
    "should_stop",
]


class CallableReport(types.ModuleType):
    """The module itself may be called: `report(step=10)` is `report.report(step=10)`."""

    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = CallableReport
