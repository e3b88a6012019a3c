"""Runs one attempt on a node of a cluster: `python -I -S slice_main.py FOLDER`

Standard input is the lifeline: its first line is `{"attempt_id", "spec"}`, what follows are
requests to stop, its end means stop. This process is only the shim: what started it may kill its
direct child at any moment, so the keeper is one step further down, in its own session.

`python -I -S slice_main.py FOLDER --settle ATTEMPT_ID` ends what a killed keeper left and writes
the exit record, if there is none; exit status 0 once it is there.

`python -I -S slice_main.py FOLDER --sweep ATTEMPT_ID` reads a request to stop, and kills what
lives of the slice, also below a supervisor that hangs; prints `{"killed", "living"}`.

`python -I -S slice_main.py FOLDER --stacks ATTEMPT_ID SECONDS` prints where each process of the
slice is now, as a list of JSON objects.
"""

import os
import sys

if "runyard" not in sys.modules:
    # Only this folder is importable: no site-packages, and nothing else of the package.
    package = type(sys)("runyard")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["runyard"] = package

import contextlib
import json
import signal
import time
from typing import Any

from runyard.supervisor import (
    journal,
    kernel,
    liveness,
    process_table,
    protocol,
    reconcile,
    slice_keeper,
    stop_request,
)

LINE_LIMIT = 16 << 20
NUDGED_S = 0.2
PROGRAM = b"/supervisor/slice_main.py"
STACK_LENGTH = 64 * 1024  # of each process: they travel


def main(arguments: list[str]) -> int:
    folder, *rest = arguments
    os.chdir(folder)
    if rest[:1] == ["--settle"]:
        return settle(folder, rest[1])
    if rest[:1] == ["--sweep"]:
        return sweep(folder, rest[1])
    if rest[:1] == ["--stacks"]:
        return tell_stacks(rest[1], float(rest[2]))
    return run()


def run() -> int:
    line, heard = first_line()
    if not line:
        return 1  # whoever started us is gone already
    order: dict[str, Any] = json.loads(line)
    attempt_id = order["attempt_id"]
    journal.create(f"{protocol.ATTEMPTS}/{attempt_id}", order["spec"])
    kernel.name_process("runyard-shim")
    pid = os.fork()
    if pid == 0:
        become_keeper(attempt_id, heard)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def become_keeper(attempt_id: str, heard: bytes) -> None:
    try:
        os.setsid()
        os.closerange(3, 1 << 20)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        slice_keeper.keep(attempt_id, heard)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)


def first_line() -> tuple[bytes, bytes]:
    """The first line and what came behind it; both empty where the input ended before."""
    data = b""
    while b"\n" not in data:
        chunk = os.read(0, 65536)
        if not chunk or len(data) > LINE_LIMIT:
            return b"", b""
        data += chunk
    line, _, rest = data.partition(b"\n")
    return line, rest


def settle(slice_folder: str, attempt_id: str) -> int:
    """A supervisor that outlived its keeper hears nothing of the lifeline any more: it is told."""
    folder = f"{protocol.ATTEMPTS}/{attempt_id}"
    let_go_on(slice_folder)
    if liveness.supervisor_alive(folder):
        slice_keeper.tell_lost(folder)
        stop_request.nudge(folder)
        time.sleep(NUDGED_S)
    return 0 if reconcile.settle(folder) is not None else 1


def sweep(slice_folder: str, attempt_id: str) -> int:
    """The request comes with the question: whoever was to write it down may be what hangs."""
    folder = f"{protocol.ATTEMPTS}/{attempt_id}"
    slice_keeper.write_request(folder, json.loads(sys.stdin.buffer.read()))
    let_go_on(slice_folder)
    stop_request.nudge(folder)
    [(killed, living)] = reconcile.sweep_asked([folder]).values()
    print(json.dumps({"killed": killed, "living": living}))
    return 0


def let_go_on(slice_folder: str) -> None:
    """Shim, keeper and supervisor, of which somebody may have stopped any. They are known by the
    command line that they have from the shim, which names a folder that is the slice's alone."""
    for pid in process_table.pids():
        if is_of_slice(pid, slice_folder):
            with contextlib.suppress(OSError):
                pidfd = os.pidfd_open(pid)
                try:
                    if is_of_slice(pid, slice_folder):
                        signal.pidfd_send_signal(pidfd, signal.SIGCONT)
                finally:
                    os.close(pidfd)


def is_of_slice(pid: int, slice_folder: str) -> bool:
    words = process_table.command_line(pid).rstrip(b"\0").split(b"\0")
    return words[-1] == os.fsencode(slice_folder) and words[-2:][0].endswith(PROGRAM)


def tell_stacks(attempt_id: str, seconds: float) -> int:
    from runyard.supervisor import stack_dump  # no start of a slice waits for it

    folder = protocol.attempt_folder(".", attempt_id)
    found = stack_dump.of_attempt(folder, attempt_id, seconds, neighbours=True)
    told = [one._replace(text=one.text[:STACK_LENGTH])._asdict() for one in found]
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
