"""API keys, flags and the answers kept for repeated requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from runyard.stores.base import Key
from runyard.stores.column_types import Moment, to_the_microsecond
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import api_keys, flags, idempotency_keys

_KEYS = Statement(select(api_keys).order_by(api_keys.c.id))
_BY_DIGEST = Statement(select(api_keys).where(api_keys.c.digest == bindparam("the_digest")))
_INSERT_KEY = Statement(
    insert(api_keys).inline(),
    [c.key for c in api_keys.c if c.key != "id"],
    gives=api_keys.c.id,
)
_DELETE_KEY = Statement(delete(api_keys).where(api_keys.c.id == bindparam("the_id")))
_TOUCH_KEY = Statement(
    update(api_keys).where(api_keys.c.id == bindparam("the_id")), ("last_used_at",)
)
_FLAG = Statement(select(flags.c.value).where(flags.c.name == bindparam("the_name")))
_FLAGS = Statement(select(flags).where(flags.c.name.startswith(bindparam("prefix"))))
_UPDATE_FLAG = Statement(update(flags).where(flags.c.name == bindparam("the_name")), ("value",))
_INSERT_FLAG = Statement(insert(flags).inline(), ("name", "value"))
_DELETE_FLAG = Statement(delete(flags).where(flags.c.name == bindparam("the_name")))
_ANSWER = Statement(
    select(idempotency_keys.c.digest, idempotency_keys.c.answer).where(
        idempotency_keys.c.key_id == bindparam("the_id"),
        idempotency_keys.c.key == bindparam("the_key"),
    )
)
_INSERT_ANSWER = Statement(insert(idempotency_keys).inline(), [c.key for c in idempotency_keys.c])
_FORGET_ANSWERS = Statement(
    delete(idempotency_keys).where(idempotency_keys.c.at < bindparam("moment", type_=Moment))
)


class KeyReads(Session):
    def keys(self) -> list[Key]:
        return [_key_from(row) for row in self._rows(_KEYS)]

    def key_by_hash(self, digest: str) -> Key | None:
        row = self._row(_BY_DIGEST, the_digest=digest)
        return None if row is None else _key_from(row)

    def flag(self, name: str) -> str | None:
        row = self._row(_FLAG, the_name=name)
        return None if row is None else row.value

    def flags(self, prefix: str) -> dict[str, str]:
        found = self._rows(_FLAGS, prefix=prefix)
        return {row.name: row.value for row in found if row.name.startswith(prefix)}

    def idempotent(self, key_id: int, key: str) -> tuple[str, str] | None:
        row = self._row(_ANSWER, the_id=key_id, the_key=key)
        return None if row is None else (row.digest, row.answer)


class KeyWrites(KeyReads):
    def insert_key(self, key: Key, digest: str) -> Key:
        key_id = self._insert(
            _INSERT_KEY,
            name=key.name,
            role=key.role,
            prefix=key.prefix,
            digest=digest,
            local=key.local,
            created_at=key.created_at,
            last_used_at=key.last_used_at,
            expires_at=key.expires_at,
        )
        return replace(key, key_id=key_id, created_at=to_the_microsecond(key.created_at))

    def revoke_key(self, key_id: int) -> bool:
        return self._run(_DELETE_KEY, the_id=key_id) > 0

    def touch_key(self, key_id: int, at: float) -> None:
        self._run(_TOUCH_KEY, the_id=key_id, last_used_at=at)

    def set_flag(self, name: str, value: str | None) -> None:
        if value is None:
            self._run(_DELETE_FLAG, the_name=name)
        elif not self._run(_UPDATE_FLAG, the_name=name, value=value):
            self._run(_INSERT_FLAG, name=name, value=value)

    def put_idempotent(self, key_id: int, key: str, digest: str, answer: str, at: float) -> None:
        self._run(_INSERT_ANSWER, key_id=key_id, key=key, digest=digest, answer=answer, at=at)

    def forget_idempotent(self, before: float) -> int:
        return self._run(_FORGET_ANSWERS, moment=before)


def _key_from(row: Any) -> Key:
    return Key(
        key_id=row.id,
        name=row.name,
        role=row.role,
        prefix=row.prefix,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        expires_at=row.expires_at,
        local=row.local,
    )
