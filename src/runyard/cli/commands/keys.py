"""runyard keys: list, create and revoke API keys."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from runyard.cli import amounts, answers, exit_codes, formatting, options, tables, wording
from runyard.cli.complaints import Complaint
from runyard.sdk.client import Client


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ls | create NAME | revoke KEY")
    listing = actions.add_parser("ls", aliases=["list"], help="all keys, without their secrets")
    options.add_read(listing, ids=True)
    create = actions.add_parser("create", help="make a key; its secret is shown once")
    create.add_argument("name")
    create.add_argument("--role", choices=("admin", "user", "viewer"), default="user")
    create.add_argument("--expires", metavar="SPAN", help="after 30d, 12h ...")
    options.add_read(create, ids=True)
    revoke = actions.add_parser("revoke", aliases=["rm"], help="make a key useless")
    revoke.add_argument("key", help="id or name")
    options.add_read(revoke)
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.action == "create":
        return _create(args, client)
    if args.action in ("revoke", "rm"):
        key = _found(client, args.key)
        client.revoke_key(key["key_id"])
        print(wording.say("key_revoked", key=key["name"]))
        return 0
    return answers.print_all(args, client.keys(), "key_id", _show)


def _create(args: argparse.Namespace, client: Client) -> int:
    expires_at = None
    if args.expires:
        expires_at = time.time() + amounts.seconds(args.expires, "--expires")
    made = client.create_key(args.name, role=args.role, expires_at=expires_at)
    secret = made.get("secret") or made.get("key")
    if args.json:
        tables.print_json(made)
    elif args.quiet:
        print(secret)
    else:
        print(wording.say("key_once"), file=sys.stderr)
        print(secret)
    return 0


def _found(client: Client, word: str) -> dict[str, Any]:
    keys = client.keys()
    found = [key for key in keys if word == str(key.get("key_id"))]
    found = found or [key for key in keys if word == key.get("name")]
    if len(found) == 1:
        return found[0]
    what = "There is no key" if not found else "More than one key is called"
    raise Complaint(f"{what} '{word}'.", hint="See 'runyard keys ls'.", code=exit_codes.NOT_FOUND)


def _show(keys: list[dict[str, Any]]) -> None:
    headings = ("ID", "NAME", "ROLE", "BEGINS", "CREATED", "USED", "EXPIRES")
    tables.print_table(headings, [_row(key) for key in keys], elastic=(1,))


def _row(key: dict[str, Any]) -> list[str]:
    return [
        str(key.get("key_id")),
        str(key.get("name")) + (" (this machine)" if key.get("local") else ""),
        str(key.get("role")),
        str(key.get("prefix") or ""),
        formatting.clock(key.get("created_at")),
        formatting.age(key.get("last_used_at")),
        formatting.clock(key.get("expires_at")),
    ]
