"""Queries over findings: those of runs, conversions and comparisons have the same columns and one owner each."""

from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from service.records.models import ComparisonFinding, ConversionFinding, Finding
from service.records.pages import Page, cut, decode, encode, fetched, ordinal

F = TypeVar("F", Finding, ConversionFinding, ComparisonFinding)

_LISTING = "findings"


def page(
    session: Session,
    model: type[F],
    owner: InstrumentedAttribute[str],
    owner_id: str,
    *,
    limit: int,
    cursor: str | None,
    **wanted: Any,
) -> Page[F]:
    """Findings in the order of the report; `wanted` holds values of columns, None for any. Raises: BadCursor."""
    query = select(model).where(owner == owner_id)
    for column, value in wanted.items():
        if value is not None:
            query = query.where(getattr(model, column) == value)
    after = decode(cursor, _LISTING, ordinal)
    if after is not None:
        query = query.where(model.seq > after[0])
    rows = session.scalars(query.order_by(model.seq).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.seq))
