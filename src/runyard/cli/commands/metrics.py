"""runyard metrics: the curves of a job in the terminal."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from runyard.cli import exit_codes, metric_plot, options, screen, tables, wording
from runyard.cli.complaints import Complaint
from runyard.cli.metric_plot import Series
from runyard.sdk.client import Client

if TYPE_CHECKING:
    from runyard.cli.metric_feed import MetricFeed

_KEPT = 20_000
_REFRESH_S = 1.0
_LEAST_WIDTH, _MOST_WIDTH = 30, 120


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "The lowest and the highest value of every stretch are always drawn."
    parser.add_argument("job", metavar="JOB", help="id (job-... or a number)")
    parser.add_argument("-k", "--keys", metavar="NAMES", help="loss,lr; default: what tells most")
    parser.add_argument("--points", type=int, metavar="N", help="at most so many of each series")
    parser.add_argument("--attempt", type=int, help="of one attempt only")
    parser.add_argument("--log", action="store_true", help="a logarithmic scale")
    parser.add_argument("--height", type=int, default=0, help="lines of each curve")
    parser.add_argument("--names", action="store_true", help="only which metrics there are")
    parser.add_argument("-w", "--watch", action="store_true", help="stay and draw what comes")
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    if args.points is not None and args.points < 1:
        raise Complaint("--points is a number above 0.", code=exit_codes.USAGE)
    if args.watch and args.json:
        raise Complaint("--watch and --json cannot be used together.", code=exit_codes.USAGE)
    client = options.client(args)
    wanted = [name for name in (args.keys or "").split(",") if name]
    if args.watch:
        return _watch(args, client, wanted)
    found = _asked(args, client)
    everything = args.names or (args.json and not wanted)
    names = list(found) if everything else metric_plot.chosen(list(found), wanted)
    if args.json:
        tables.print_json({"series": {name: _plain(found[name]) for name in names}})
    elif args.names:
        print("\n".join(names))
    elif not names:
        told = "no_such_metric" if found else "no_metrics"
        print(wording.say(told, job=args.job, names=args.keys, known=", ".join(found)))
    else:
        width = tables.terminal_width() if screen.is_terminal() else 80
        print("\n".join(_drawn(args, {name: found[name] for name in names}, width)))
    return 0


def _asked(args: argparse.Namespace, client: Client) -> dict[str, Series]:
    points = args.points or (10_000 if args.json else 2 * _MOST_WIDTH)
    answer = client.metrics(args.job, points=points, attempt=args.attempt)
    return {name: Series.read(series) for name, series in answer.items() if series["values"]}


def _plain(series: Series) -> dict[str, Any]:
    """As the API gives it: JSON has no NaN."""
    words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    values = [words.get(repr(value), value) for value in series.values]
    columns = {"steps": series.steps, "times": series.times, "values": values}
    return {**columns, "sampled": series.sampled}


def _drawn(args: argparse.Namespace, found: dict[str, Series], width: int) -> list[str]:
    width = max(_LEAST_WIDTH, min(width, _MOST_WIDTH))
    height = args.height or (12 if len(found) == 1 else 6)
    plain = not screen.draws_unicode()
    lines: list[str] = []
    for name, series in found.items():
        lines += [""] if lines else []
        lines += metric_plot.lines(name, series, width, height, log=args.log, ascii_only=plain)
    return lines


def _watch(args: argparse.Namespace, client: Client, wanted: list[str]) -> int:
    from runyard.cli.metric_feed import MetricFeed

    job = client.job(args.job)
    with MetricFeed(client, job.id, lambda: _asked(args, client), _KEPT) as feed:
        if not screen.is_terminal():
            return _told(feed, wanted)
        with screen.opened() as page:
            while not feed.over:
                found = feed.series()
                names = metric_plot.chosen(list(found), wanted)
                head = [tables.bold(f"{job.id}  {time.strftime('%H:%M:%S')}"), ""]
                body = _drawn(args, {name: found[name] for name in names}, page.size()[0])
                page.show(head + (body or [wording.say("no_metrics", job=args.job)]))
                if page.key(_REFRESH_S) in ("q", "Q", "\x1b"):
                    return 0
    found = feed.series()
    names = metric_plot.chosen(list(found), wanted)
    print("\n".join(_drawn(args, {name: found[name] for name in names}, tables.terminal_width())))
    return 0


def _told(feed: MetricFeed, wanted: list[str]) -> int:
    """Into a pipe: one line for each new point."""
    while True:
        over = feed.over  # known before the last points are taken
        for name, step, at, value in feed.fresh():
            if not wanted or metric_plot.chosen([name], wanted):
                print(name, "-" if step is None else step, f"{at:.3f}", repr(value), flush=True)
        if over:
            return 0
        feed.wait(_REFRESH_S)
