"""runyard open: a link that logs a browser in, opened where there is a browser."""

from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import urlsplit

from runyard.cli import options, tables, wording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "The link works once, within ten minutes, and logs in as the key in use here."
    parser.add_argument(
        "--print", action="store_true", dest="only_print", help="print the link, open nothing"
    )
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    made = client.login_link()
    url = _page(client.url.rstrip("/"), made["path"])
    if args.json:
        tables.print_json({"url": url, "expires_at": made["expires_at"]})
        return 0
    print(url)
    if args.only_print or not sys.stdout.isatty():
        return 0
    if _has_browser() and _opened(url):
        print(wording.say("browser_opened"), file=sys.stderr)
    else:
        host = urlsplit(url).hostname
        far = host in ("127.0.0.1", "localhost", "::1") and "SSH_CONNECTION" in os.environ
        word = "link_by_tunnel" if far else "link_once"
        print(wording.say(word, port=urlsplit(url).port or 80), file=sys.stderr)
    return 0


def _page(server: str, path: str) -> str:
    """Where people see the server, which may be below a path that `server` has or has not."""
    root = path.partition("/login#")[0]
    return server.removesuffix(root) + path if root else server + path


def _has_browser() -> bool:
    """A browser inside a terminal would take the terminal away."""
    shown = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    return shown and "SSH_CONNECTION" not in os.environ


def _opened(url: str) -> bool:
    import webbrowser

    return webbrowser.open(url)
