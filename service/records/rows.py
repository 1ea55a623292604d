"""Rows as values, and adding those that are not there yet: what a repeated step does a second time is nothing."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, TypeVar, cast

from sqlalchemy import Table, inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.records.models import Base

T = TypeVar("T")

_BATCH = 1_000


def values(row: Base) -> dict[str, Any]:
    """The columns of a row that was not added to a session: what was given, and None for the rest that may be it."""
    given = row.__dict__
    return {name: given.get(name) for name, nullable in _columns(type(row)) if nullable or name in given}


@cache
def _columns(model: type[Base]) -> tuple[tuple[str, bool], ...]:
    columns: Iterable[Any] = inspect(model).columns
    return tuple((column.key, column.nullable) for column in columns)


def batches(items: Iterable[T], size: int = _BATCH) -> Iterator[list[T]]:
    """Lists of at most `size` items, in order."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def insert(session: Session, model: type[Base]) -> Any:
    """An insert of this database's dialect, which both have `on_conflict_do_nothing` and `on_conflict_do_update`."""
    table = cast("Table", model.__table__)
    return (sqlite if session.get_bind().dialect.name == "sqlite" else postgresql).insert(table)


def insert_new(session: Session, model: type[Base], rows: Iterable[dict[str, Any]]) -> int:
    """Insert rows but those that break a unique key; how many were inserted.

    A row that another transaction is just inserting is waited for: once this returns, the row is there.
    """
    session.flush()  # rows that these refer to
    statement = insert(session, model).on_conflict_do_nothing()
    count = 0
    for batch in batches(rows):
        count += (
            session.connection()
            .execute(statement, batch, execution_options={"preserve_rowcount": True})
            .rowcount
        )
    return count
