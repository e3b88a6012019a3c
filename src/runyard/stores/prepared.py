"""Statements written in SQLAlchemy Core, compiled once per database and then run on the driver.

Going through SQLAlchemy's own execution costs several times what SQLite needs for the work.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Boolean, Column
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.base import Executable
from sqlalchemy.types import TypeDecorator

Parameters = dict[str, Any] | tuple[Any, ...]


class Statement:
    """A Core statement to be kept for the life of the process; `columns` are those an INSERT or
    UPDATE takes as parameters of their own name, `gives` is the id an INSERT hands back."""

    __slots__ = ("columns", "core", "gives")

    def __init__(
        self,
        core: Executable,
        columns: Sequence[str] | None = None,
        gives: Column[Any] | None = None,
    ) -> None:
        self.core = core
        self.columns = None if columns is None else tuple(columns)
        self.gives = gives


class Prepared:
    """One statement in the words of one database, with the conversions its values need."""

    __slots__ = ("_binders", "_constants", "_in_order", "_make", "_readers", "sql")

    def __init__(self, statement: Statement, dialect: Dialect) -> None:
        core: Any = statement.core
        # SQLite knows the id of the last row by itself, and RETURNING doubles the price there.
        if statement.gives is not None and dialect.name != "sqlite":
            core = core.returning(statement.gives)
        compiled = core.compile(
            dialect=dialect,
            column_keys=None if statement.columns is None else list(statement.columns),
            compile_kwargs={"render_postcompile": True},
        )
        self.sql: str = compiled.string
        self._binders: list[tuple[str, Callable[[Any], Any]]] = []
        for name, bind in compiled.binds.items():
            binder = bind.type.dialect_impl(dialect).bind_processor(dialect)
            if binder is not None and name in compiled.params:
                self._binders.append((name, binder))
        self._in_order = _picker(compiled.positiontup) if compiled.positional else None
        self._constants = {k: v for k, v in compiled.params.items() if v is not None}
        self._read_columns(core, dialect)

    def _read_columns(self, core: Any, dialect: Dialect) -> None:
        self._readers: list[tuple[int, Callable[[Any], Any]]] = []
        columns = list(getattr(core, "exported_columns", ()))
        for place, column in enumerate(columns):
            # The drivers give Python's own values for all types but ours and SQLite's booleans.
            if isinstance(column.type, TypeDecorator | Boolean):
                reader = column.type.dialect_impl(dialect).result_processor(dialect, None)
                if reader is not None:
                    self._readers.append((place, reader))
        names = [column.key for column in columns]
        row_type: Any = namedtuple("Row", names)  # type: ignore[misc]
        self._make: Callable[[Any], Any] = row_type._make

    def bound(self, params: Mapping[str, Any]) -> Parameters:
        values = {**self._constants, **params}
        for name, binder in self._binders:
            values[name] = binder(values[name])
        return values if self._in_order is None else self._in_order(values)

    def row(self, values: Sequence[Any]) -> Any:
        """A named tuple of the selected columns."""
        if not self._readers:
            return self._make(values)
        changed = list(values)
        for place, reader in self._readers:
            changed[place] = reader(changed[place])
        return self._make(changed)


def _picker(names: Sequence[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)


class PreparedStatements:
    """The statements one store has used so far."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._known: dict[Statement, Prepared] = {}

    def get(self, statement: Statement) -> Prepared:
        known = self._known.get(statement)
        if known is None:
            known = self._known[statement] = Prepared(statement, self.dialect)
        return known

    def once(self, statement: Statement) -> Prepared:
        """For a statement that was made for a single use."""
        return Prepared(statement, self.dialect)
