"""How far the files of attempts were read: flags of the store, gone once all was read."""

from __future__ import annotations

from runyard.stores.base import Reader, Transaction

_PREFIX = "read:"


def all_of(reader: Reader) -> dict[str, str]:
    """Attempt -> its mark."""
    found = reader.flags(_PREFIX)
    return {name.removeprefix(_PREFIX): mark for name, mark in found.items()}


def is_unread(reader: Reader, attempt_id: str) -> bool:
    """Whether some of what it wrote has not been read yet."""
    return reader.flag(_PREFIX + attempt_id) is not None


def put(tx: Transaction, attempt_id: str, mark: str | None) -> None:
    tx.set_flag(_PREFIX + attempt_id, mark)


def note_end(tx: Transaction, attempt_id: str) -> None:
    """With the end itself, so that its last lines are read whatever happens to this server."""
    if tx.flag(_PREFIX + attempt_id) is None:
        tx.set_flag(_PREFIX + attempt_id, "")
