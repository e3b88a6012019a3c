"""Draws docs/images/terminal.svg from a real session: a server, real jobs, real commands."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "terminal.svg"
RUNYARD = Path(sys.executable).parent / "runyard"
WIDTH = 110

TRAINING = """\
import sys, time
for step in range(1, 100000):
    print(f"step {step:>5}  loss {2.3 / (1 + step / 40) ** 0.5:.4f}", flush=True)
    time.sleep(0.05)
"""

# Without the web font of the original, so that the picture asks nothing of anybody.
TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Session:
    """A terminal in which commands are typed; what they print is kept."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.console = Console(
            record=True,
            width=WIDTH,
            file=io.StringIO(),
            force_terminal=True,
            color_system="truecolor",
        )

    def type(self, line: str) -> str:
        """Run one command of a person, as on a terminal; what it said."""
        said = self._on_a_terminal(line)
        self.console.print(Text("$ ", "green") + Text(line, "bold"))
        self.console.print(Text.from_ansi(said.rstrip()))
        self.console.print()
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)

    def _on_a_terminal(self, line: str) -> str:
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            ["sh", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        said = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError as error:  # a terminal whose last writer is gone
                if error.errno != errno.EIO:
                    raise
                break
            if not chunk:
                break
            said += chunk
        os.close(ours)
        child.wait()
        return said.decode(errors="replace").replace("\r\n", "\n")


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        if server.poll() is not None:
            raise SystemExit(f"the server ended with {server.returncode}")
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=2).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not become ready")


def story(session: Session) -> None:
    first = session.type("runyard run -d --name resnet50 --priority high -- python3 train.py")
    job = next(word for word in first.split() if word.startswith("job-"))
    for name in ("vit-small", "whisper-tune"):
        line = f"runyard run -d --name {name} -- python3 train.py"
        session._on_a_terminal(line)
    time.sleep(1.5)
    session.type("runyard ls")
    listed = json.loads(session._on_a_terminal("runyard ls --json"))
    waiting = next(each["job_id"] for each in listed if each["status"] == "pending")
    session.type(f"runyard explain {waiting}")
    session.type(f"runyard logs --tail 3 {job}")
    session.type(f"runyard cancel {job}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(TRAINING)
        environment = {
            **{key: text for key, text in os.environ.items() if not key.startswith("RUNYARD_")},
            "PATH": f"{RUNYARD.parent}:{os.environ['PATH']}",
            "RUNYARD_DATA_DIR": str(folder / "data"),
            "RUNYARD_PORT": "8799",
            "RUNYARD_GATE_CPU": "100",
            "RUNYARD_NODE_NAME": "gpubox",
            "COLUMNS": str(WIDTH),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        environment.pop("NO_COLOR", None)
        server = subprocess.Popen(
            [RUNYARD, "server"], env=environment, cwd=folder, stderr=subprocess.DEVNULL
        )
        try:
            wait_for("http://127.0.0.1:8799", server)
            session = Session(folder, environment)
            story(session)
        finally:
            server.terminate()
            server.wait()
        picture = session.console.export_svg(
            title="runyard", code_format=TEMPLATE, unique_id="terminal"
        )
    PICTURE.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE))
    print(f"drawn: {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
