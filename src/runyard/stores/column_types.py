"""Column types: times are epoch seconds and JSON is plain values on our side of the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, TIMESTAMP, BigInteger, Integer, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from runyard.stores import json_text

# SQLite gives ids by itself only to a column declared INTEGER.
Identity = BigInteger().with_variant(Integer(), "sqlite")


class Moment(TypeDecorator[float]):
    """A real timestamp in PostgreSQL, sortable UTC text in SQLite, a float of seconds for us."""

    impl = TIMESTAMP(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(TIMESTAMP(timezone=True))

    def bind_processor(self, dialect: Dialect) -> Callable[[float | None], Any]:
        return _moment_to_text if dialect.name == "sqlite" else _moment_to_datetime

    def result_processor(
        self,
        dialect: Dialect,
        coltype: object,  # noqa: ARG002
    ) -> Callable[[Any], float | None]:
        return _moment_from_text if dialect.name == "sqlite" else _moment_from_datetime


class Json(TypeDecorator[Any]):
    """Kept as the text that was written, so that key order and numbers come back unchanged."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(JSON())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str | None]:  # noqa: ARG002
        return _json_to_text

    def result_processor(
        self,
        dialect: Dialect,  # noqa: ARG002
        coltype: object,  # noqa: ARG002
    ) -> Callable[[Any], Any]:
        return _json_from_text


def to_the_microsecond(moment: float) -> float:
    """What a moment is after it was stored and read again."""
    return round(moment, 6)


def _moment_to_text(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(" ", "microseconds")[:-6]


def _moment_from_text(text: str | None) -> float | None:
    if text is None:
        return None
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _moment_to_datetime(moment: float | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC)


def _moment_from_datetime(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _json_to_text(value: Any) -> str | None:
    return None if value is None else json_text.encode(value)


def _json_from_text(text: Any) -> Any:
    return None if text is None else json_text.decode(text)
