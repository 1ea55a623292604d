"""Queries over self-checks: what each found, the latest of every device, and what a failure still stands against."""

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, delete, exists, func, select
from sqlalchemy.orm import Session

from service.records.models import SelfCheck, SelfCheckResult
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.rows import insert_new, values

_LISTING = "selfchecks"
_MOST_DEVICES = 200  # that are looked at for what is current, those checked last
_KEPT = 100  # checks that workers made as they started, of one device


def save(session: Session, row: SelfCheck, results: Sequence[SelfCheckResult]) -> None:
    """Store a self-check with its results; one that is there stands."""
    if insert_new(session, SelfCheck, [values(row)]):
        owner = {"self_check_id": row.id, "project_id": row.project_id}
        insert_new(session, SelfCheckResult, [{**values(result), **owner} for result in results])


def get(session: Session, project_id: str, id_: str) -> SelfCheck | None:
    """The self-check with an id."""
    query = select(SelfCheck).where(SelfCheck.project_id == project_id, SelfCheck.id == id_)
    return session.scalars(query).one_or_none()


def page(
    session: Session,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    conditions: Sequence[ColumnElement[bool]] = (),
) -> Page[SelfCheck]:
    """Self-checks, newest first. Raises: BadCursor."""
    query = select(SelfCheck).where(SelfCheck.project_id == project_id, *conditions)
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(SelfCheck.id < after[0])
    rows = session.scalars(query.order_by(SelfCheck.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def holds(conditions: Sequence[ColumnElement[bool]]) -> ColumnElement[bool]:
    """That a self-check has a result of which all of this is true."""
    return exists().where(SelfCheckResult.self_check_id == SelfCheck.id, *conditions)


def results(session: Session, id_: str) -> Sequence[SelfCheckResult]:
    """What a self-check found, kernel by kernel."""
    query = select(SelfCheckResult).where(SelfCheckResult.self_check_id == id_)
    return session.scalars(query.order_by(SelfCheckResult.ordinal)).all()


def counts(session: Session, ids: Iterable[str]) -> dict[str, dict[str, int]]:
    """How many kernels came out how, by self-check."""
    query = (
        select(SelfCheckResult.self_check_id, SelfCheckResult.outcome, func.count())
        .where(SelfCheckResult.self_check_id.in_(list(ids)))
        .group_by(SelfCheckResult.self_check_id, SelfCheckResult.outcome)
    )
    found: dict[str, dict[str, int]] = {}
    for id_, outcome, number in session.execute(query):
        found.setdefault(id_, {})[outcome] = number
    return found


def latest(session: Session, project_id: str, *, device_class: str | None = None) -> list[SelfCheck]:
    """The newest self-check of every device at each level, newest first; of devices that differ in anything, each."""
    newest = (
        select(func.max(SelfCheck.id))
        .where(SelfCheck.project_id == project_id)
        .group_by(SelfCheck.device_key, SelfCheck.level)
    )
    if device_class is not None:
        newest = newest.where(SelfCheck.device_class == device_class)
    query = select(SelfCheck).where(SelfCheck.id.in_(newest)).order_by(SelfCheck.id.desc())
    return list(session.scalars(query.limit(2 * _MOST_DEVICES)))


def of_device(session: Session, project_id: str, device_key: str) -> list[SelfCheck]:
    """The newest self-check of one device at each level, newest first."""
    newest = (
        select(func.max(SelfCheck.id))
        .where(SelfCheck.project_id == project_id, SelfCheck.device_key == device_key)
        .group_by(SelfCheck.level)
    )
    query = select(SelfCheck).where(SelfCheck.id.in_(newest)).order_by(SelfCheck.id.desc())
    return list(session.scalars(query))


def results_of(
    session: Session,
    ids: Sequence[str],
    *,
    format: str | None = None,
    operation: str | None = None,  # noqa: A002
) -> dict[str, list[SelfCheckResult]]:
    """What these self-checks found, in order, by self-check."""
    query = select(SelfCheckResult).where(SelfCheckResult.self_check_id.in_(ids))
    if format is not None:
        query = query.where(SelfCheckResult.format == format)
    if operation is not None:
        query = query.where(SelfCheckResult.operation == operation)
    found: dict[str, list[SelfCheckResult]] = {}
    for row in session.scalars(query.order_by(SelfCheckResult.self_check_id, SelfCheckResult.ordinal)):
        found.setdefault(row.self_check_id, []).append(row)
    return found


def thin_out(session: Session, project_id: str, device_key: str) -> int:
    """Forget all but the last checks of a device that workers made as they started; what jobs asked for stays."""
    started = (
        SelfCheck.project_id == project_id,
        SelfCheck.device_key == device_key,
        SelfCheck.job_id.is_(None),
    )
    query = select(SelfCheck.id).where(*started).order_by(SelfCheck.id.desc()).offset(_KEPT).limit(_KEPT)
    old = list(session.scalars(query))
    if old:
        session.execute(delete(SelfCheckResult).where(SelfCheckResult.self_check_id.in_(old)))
        session.execute(delete(SelfCheck).where(SelfCheck.id.in_(old)))
    return len(old)
