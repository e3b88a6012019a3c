"""Starts the server and a demo job, prints the address, stays until Ctrl-C ends both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

RUNYARD = str(Path(sys.executable).parent / "runyard")
START_LIMIT_S = 60.0


def data_dir(arguments: list[str]) -> Path:
    """Where the server we start keeps its state: the flag, the environment, the default."""
    for position, word in enumerate(arguments):
        if word == "--data-dir" and position + 1 < len(arguments):
            return Path(arguments[position + 1]).expanduser()
        if word.startswith("--data-dir="):
            return Path(word.partition("=")[2]).expanduser()
    return Path(os.environ.get("RUNYARD_DATA_DIR") or "~/.runyard").expanduser()


def address_of(folder: Path, server: subprocess.Popen[bytes]) -> str | None:
    """The server's URL once it answers; None when it ended instead."""
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit:
        if server.poll() is not None:
            return None
        try:
            told = json.loads((folder / "server.json").read_text())
            with urllib.request.urlopen(f"{told['url']}/healthz", timeout=2):
                return str(told["url"])
        except (OSError, ValueError, KeyError, urllib.error.URLError):
            time.sleep(0.1)
    return None


def main(arguments: list[str]) -> int:
    # In a session of its own: a Ctrl-C of the terminal reaches the server once, through us.
    server = subprocess.Popen([RUNYARD, "server", *arguments], start_new_session=True)

    def forward(number: int, _frame: object) -> None:
        if server.poll() is None:
            server.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)

    folder = data_dir(arguments)
    url = address_of(folder, server)
    if url is None:
        if server.poll() is None:
            print(f"The server did not answer within {START_LIMIT_S:.0f} s.", file=sys.stderr)
            server.terminate()
        return server.wait() or 1
    command = os.path.relpath(RUNYARD)
    print(f"\nRunyard is up at {url}. In another terminal:")
    print(f"    {command} ls\n    {command} run -- python3 your_training.py")
    print("Ctrl-C ends the server and its jobs. A demo job:\n", flush=True)
    environment = {**os.environ, "RUNYARD_URL": url, "RUNYARD_DATA_DIR": str(folder)}
    demo = subprocess.Popen(
        [RUNYARD, "demo"], env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )
    while demo.poll() is None and server.poll() is None:
        time.sleep(0.1)
    if server.poll() is None:
        print(f"\nThe demo is over; the server runs on at {url} until Ctrl-C.", flush=True)
    else:
        demo.kill()  # only follows a log; its job ended with the server
        demo.wait()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
