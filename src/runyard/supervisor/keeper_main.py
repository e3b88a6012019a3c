"""Start of the keeper, by file path: `python -I -S keeper_main.py --data-dir DIR --generation G`.

Detaches itself; the process that was started ends with 0 once a keeper listens.
"""

import os
import sys

if "runyard" not in sys.modules:
    # Only this folder is importable: no site-packages, and nothing else of the package.
    package = type(sys)("runyard")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["runyard"] = package

import fcntl
import signal

from runyard.supervisor import keeper, kernel, protocol

READY = b"+"
ALONE_S = 60.0  # a keeper that nobody needs leaves after this


def main(arguments: list[str]) -> int:
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    data_dir, generation = options["--data-dir"], options["--generation"]
    alone_s = float(options.get("--alone-s", ALONE_S))
    os.closerange(3, 1 << 20)
    told, tell = os.pipe()
    if os.fork():
        os.close(tell)
        return 0 if os.read(told, 1) == READY else 1
    os.close(told)
    os.setsid()
    if os.fork():
        os._exit(0)
    try:
        keep(data_dir, generation, alone_s, tell)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)


def keep(data_dir: str, generation: str, alone_s: float, tell: int) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Names are relative from here on: a unix socket's address has room for 108 bytes only.
    os.chdir(data_dir)
    if not take_lock(f"{protocol.KEEPER}/{generation}.lock"):
        os.write(tell, READY)  # another one keeps already
        return
    kernel.name_process("runyard-keeper")
    keeper.warm_up()
    name = f"{protocol.KEEPER}/{generation}.sock"
    self = keeper.Keeper(keeper.listen(name), generation, alone_s)
    self.fill()
    os.write(tell, READY)
    os.close(tell)
    self.run()
    os.unlink(name)


def take_lock(path: str) -> bool:
    """Held until this process ends; the descriptor is never closed and never opened again."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
