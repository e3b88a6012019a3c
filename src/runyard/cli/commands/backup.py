"""runyard backup: a consistent copy of the database, also while the server runs."""

from __future__ import annotations

import argparse
import os
import sqlite3
from pathlib import Path

from runyard.cli import exit_codes, formatting, tables, wording
from runyard.cli.complaints import Complaint


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="FILE", help="where the copy goes; a folder gets a dated name"
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="default: RUNYARD_DATA_DIR or ~/.runyard"
    )
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from runyard import settings

    chosen = settings.load({"data_dir": args.data_dir})
    if chosen.store_url.startswith("postgresql://"):
        raise Complaint(
            "This server keeps its state in PostgreSQL.",
            hint="Copy it with pg_dump: pg_dump --format=custom --file=FILE DATABASE_URL",
        )
    source = Path(chosen.store_url.removeprefix("sqlite:///"))
    if not source.exists():
        raise Complaint(
            f"There is no database {source}.",
            hint="Run this on the server's machine, with its --data-dir.",
            code=exit_codes.NOT_FOUND,
        )
    target = _target(Path(args.path), force=args.force)
    size = _copy(source, target)
    if args.json:
        tables.print_json({"path": str(target), "bytes": size})
    else:
        print(wording.say("backed_up", path=target, size=formatting.size(size)))
    return exit_codes.OK


def _target(path: Path, *, force: bool) -> Path:
    if path.is_dir():
        import time

        path = path / time.strftime("runyard-%Y%m%d-%H%M%S.db")
    if path.exists() and not force:
        raise Complaint(f"{path} is there already.", hint="--force overwrites it.")
    return path


def _copy(source: Path, target: Path) -> int:
    """Written aside and put in place when whole: an older backup is never half replaced."""
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        live = sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30)
        copy = sqlite3.connect(aside)
        try:
            live.backup(copy)
            copy.execute("pragma journal_mode=delete")
            if copy.execute("pragma quick_check").fetchone()[0] != "ok":
                raise Complaint("The copy is damaged.", code=exit_codes.FAILED)
        finally:
            copy.close()
            live.close()
        with open(aside, "rb") as written:
            os.fsync(written.fileno())
        os.replace(aside, target)
    except sqlite3.Error as error:
        raise Complaint(f"{source} cannot be copied: {error}", code=exit_codes.FAILED) from error
    finally:
        aside.unlink(missing_ok=True)
    return target.stat().st_size
