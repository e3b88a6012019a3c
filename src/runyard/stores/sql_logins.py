"""People who are logged in with a browser."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, insert, select, update

from runyard.stores.base_logins import LoginSession
from runyard.stores.column_types import Moment
from runyard.stores.login_tables import login_sessions
from runyard.stores.prepared import Statement
from runyard.stores.session import Session
from runyard.stores.tables import api_keys

_sessions = login_sessions.c
_BY_DIGEST = Statement(
    select(
        login_sessions,
        api_keys.c.name,
        api_keys.c.role,
        api_keys.c.expires_at.label("key_expires_at"),
    )
    .join(api_keys, api_keys.c.id == _sessions.key_id)
    .where(_sessions.digest == bindparam("the_digest"))
)
_KEY = Statement(select(api_keys.c.id).where(api_keys.c.id == bindparam("the_id")))
_INSERT = Statement(insert(login_sessions).inline(), [c.key for c in _sessions if c.key != "id"])
_EXTEND = Statement(
    update(login_sessions).where(_sessions.id == bindparam("the_id")), ("seen_at", "expires_at")
)
_DELETE = Statement(delete(login_sessions).where(_sessions.digest == bindparam("the_digest")))
_FORGET = Statement(
    delete(login_sessions).where(_sessions.expires_at < bindparam("moment", type_=Moment))
)


class LoginReads(Session):
    def login_session(self, digest: str) -> LoginSession | None:
        row = self._row(_BY_DIGEST, the_digest=digest)
        if row is None:
            return None
        return LoginSession(
            session_id=row.id,
            key_id=row.key_id,
            name=row.name,
            role=row.role,
            created_at=row.created_at,
            seen_at=row.seen_at,
            expires_at=row.expires_at,
            key_expires_at=row.key_expires_at,
        )


class LoginWrites(LoginReads):
    def insert_login_session(self, digest: str, key_id: int, at: float, expires_at: float) -> bool:
        if self._row(_KEY, the_id=key_id) is None:
            return False
        self._run(
            _INSERT,
            digest=digest,
            key_id=key_id,
            created_at=at,
            seen_at=at,
            expires_at=expires_at,
        )
        return True

    def extend_login_session(self, session_id: int, seen_at: float, expires_at: float) -> None:
        self._run(_EXTEND, the_id=session_id, seen_at=seen_at, expires_at=expires_at)

    def delete_login_session(self, digest: str) -> bool:
        return self._run(_DELETE, the_digest=digest) > 0

    def forget_login_sessions(self, before: float) -> int:
        return self._run(_FORGET, moment=before)
