"""Queries over results that a later run may take over: by the key of everything that they depend on.

What a run takes over is decided once, before its work is cut into shards, and kept in `Run.reuse`:
`{"runs": {run id: [[first ordinal, last ordinal], ...]}, "source": run id or null}`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.records.models import Result, Run
from service.records.rows import batches
from service.records.types import now

_KEYS = 500  # in one query


def oldest(max_age_seconds: int | None) -> datetime | None:
    """Before when nothing is taken over."""
    if max_age_seconds is None:
        return None
    try:
        return now() - timedelta(seconds=max_age_seconds)
    except OverflowError:  # older than calendars
        return None


def found(
    session: Session, project_id: str, keys: Iterable[str], since: datetime | None = None
) -> dict[str, str]:
    """Of these keys those with a result in a run that has ended, and the latest such run."""
    known: dict[str, str] = {}
    for batch in batches(dict.fromkeys(keys), _KEYS):
        query = (
            select(Result.reuse_key, func.max(Result.run_id))
            .join(Run, Run.id == Result.run_id)
            .where(Result.project_id == project_id, Result.reuse_key.in_(batch), Run.verdict.is_not(None))
            .group_by(Result.reuse_key)
        )
        if since is not None:
            query = query.where(Run.finished_at >= since)
        known |= {key: run_id for key, run_id in session.execute(query) if key is not None}
    return known


def source_run(session: Session, project_id: str, key: str, since: datetime | None = None) -> str | None:
    """The latest run that looked through just these sources and found nothing wrong."""
    query = select(func.max(Run.id)).where(Run.project_id == project_id, Run.source_key == key)
    if since is not None:
        query = query.where(Run.finished_at >= since)
    return session.scalar(query)


def results(session: Session, run_id: str, keys: Iterable[str]) -> dict[str, Result]:
    """Results of a run by their keys."""
    rows: dict[str, Result] = {}
    for batch in batches(dict.fromkeys(keys), _KEYS):
        query = select(Result).where(Result.run_id == run_id, Result.reuse_key.in_(batch))
        rows |= {row.reuse_key: row for row in session.scalars(query) if row.reuse_key is not None}
    return rows


def decide(session: Session, run_id: str, decision: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep what a run takes over, unless that is decided: the first decision stands, and is the answer."""
    row = session.get(Run, run_id, with_for_update={"key_share": True}, populate_existing=True)
    if row is None:
        return decision
    if row.reuse is None:
        row.reuse = dict(decision)
        session.flush()
    kept: Mapping[str, Any] = row.reuse
    return kept


def spans(ordinals: Iterable[int]) -> list[list[int]]:
    """Ascending ordinals as [first, last] of each stretch without a gap."""
    stretches: list[list[int]] = []
    for ordinal in ordinals:
        if stretches and stretches[-1][1] == ordinal - 1:
            stretches[-1][1] = ordinal
        else:
            stretches.append([ordinal, ordinal])
    return stretches
