"""Whether the training was asked to stop: by the stop file, or by SIGTERM. Modules are imported
where they are used, so that importing this package costs nearly nothing."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

PATH_VARIABLE = "RUNYARD_STOP_FILE"
LOOK_EVERY_S = 0.2  # a training may ask in every step; the file is looked at this often


class _State:
    asked = False
    handler_settled = False
    looked_at = float("-inf")


def should_stop() -> bool:
    """True once a stop was asked for; save a checkpoint then, and leave. Cheap in every step.

    The first call from the main thread installs a SIGTERM handler, if the program has none.
    """
    if _State.asked:
        return True
    if not _State.handler_settled:
        _settle_handler()
    now = time.monotonic()
    if 0 <= now - _State.looked_at < LOOK_EVERY_S:
        return _State.asked
    _State.looked_at = now
    path = os.environ.get(PATH_VARIABLE)
    if path and os.path.exists(path):
        _State.asked = True
    return _State.asked


def _settle_handler() -> None:
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may; the file is enough until it asks
    _State.handler_settled = True
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _remember)
            _end_forked_workers_at_sigterm()
    except (ValueError, OSError):  # a sub-interpreter has no signals
        pass


def _remember(_number: int, _frame: FrameType | None) -> None:
    _State.asked = True


def _end_forked_workers_at_sigterm() -> None:
    """Data loaders and pools end their workers with SIGTERM and wait for them, so a fork gets the
    default back. It is blocked meanwhile: Python forgets what arrives at a child too early."""
    import signal
    import threading

    masks = threading.local()

    def before() -> None:
        masks.old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    def after_in_parent() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.old)

    def after_in_child() -> None:
        if signal.getsignal(signal.SIGTERM) is _remember:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _State.handler_settled = False
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.old)

    os.register_at_fork(
        before=before, after_in_parent=after_in_parent, after_in_child=after_in_child
    )
