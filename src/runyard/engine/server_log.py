"""The server's own log, by loguru: one line per step of a job's life, with job and attempt ids."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger

if TYPE_CHECKING:
    from loguru import Logger, Record

_KEPT_FILES = 10
_ROTATE_AT = "20 MB"


def of(job: str = "-", attempt: str = "-") -> Logger:
    """A logger whose lines carry these ids."""
    return logger.bind(job=job, attempt=attempt)


def open_log(folder: Path, level: str, *, to_terminal: bool = True) -> None:
    """Send the log to `server.log` and, in short, to the terminal of whoever watches; where nobody
    does (a service), only what needs somebody goes there: every line costs."""
    logger.remove()
    logger.configure(extra={"job": "-", "attempt": "-"})
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if to_terminal:
        shown = level if sys.stderr.isatty() else "WARNING"
        logger.add(sys.stderr, level=shown, format=_terminal_line, diagnose=False)
    logger.add(
        folder / "server.log",
        level=level,
        format="{time:YYYY-MM-DDTHH:mm:ss.SSSZZ} {level:<7} job={extra[job]} "
        "attempt={extra[attempt]} {message}",
        rotation=_ROTATE_AT,
        retention=_KEPT_FILES,
        # Values of local variables could hold secrets.
        diagnose=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)


def close_log() -> None:
    logger.complete()
    logger.remove()


def _terminal_line(record: Record) -> str:
    where = record["extra"].get("attempt", "-")
    if where == "-":
        where = record["extra"].get("job", "-")
    name = "" if where == "-" else "<cyan>{extra[attempt]}</cyan> "
    if where != "-" and record["extra"].get("attempt", "-") == "-":
        name = "<cyan>{extra[job]}</cyan> "
    return (
        "<dim>{time:HH:mm:ss}</dim> <level>{level:<7}</level> " + name + "{message}\n{exception}"
    )


class _Forward(logging.Handler):
    """Lines of libraries that use the standard logging module."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level: str | int = logger.level(record.levelname).name
        except ValueError:
            level = record.levelno
        logger.opt(depth=6, exception=record.exc_info).log(level, record.getMessage())
