"""runyard top: machines, GPUs and jobs on one live page."""

from __future__ import annotations

import argparse

from runyard.cli import options, screen, tables, top_page, wording
from runyard.cli.top_feed import TopFeed

_REFRESH_S = 1.0
_QUIT = ("q", "Q", "\x1b", "\x04")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "q leaves it. Into a pipe it prints one page."
    parser.add_argument("--once", action="store_true", help="print one page and leave")
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.json:
        tables.print_json(client.monitor_status())
        return 0
    feed = TopFeed(client)
    feed.ask()
    if args.once or not screen.is_terminal():
        width = tables.terminal_width() if screen.is_terminal() else 160
        print("\n".join(_page(feed, width, None, alive=True)))
        return 0
    with feed.feeding, screen.opened() as page:
        while not feed.feeding.over:
            width, height = page.size()
            shown = _page(feed, width, height - 2)
            page.show([*shown, tables.dim(wording.say("top_keys"))])
            if page.key(_REFRESH_S) in _QUIT:
                break
    return 0


def _page(feed: TopFeed, width: int, height: int | None, *, alive: bool = False) -> list[str]:
    now = feed.now()
    now.live = now.live or alive
    return top_page.lines(
        now, width, height, unicode=screen.draws_unicode(), colour=tables.coloured()
    )
