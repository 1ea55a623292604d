"""Queries over self-checks: what each found, the latest of every device, and which devices are still what they were."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, delete, exists, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from service.records.models import SelfCheck, SelfCheckResult
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.rows import insert_new, values

_LISTING = "selfchecks"
_MOST_DEVICES = 200  # that are looked at for what stands, those checked last
# By the database's clock: an id tells when a job was asked for, by the clock of another host.
_NEWEST: Final = (SelfCheck.created_at.desc(), SelfCheck.id.desc())
_KEPT = 100  # checks that workers made as they started, of one device


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a self-check should be, and what one and the same of its results should be; None is anything."""

    device_class: str | None = None
    device: str | None = None
    level: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    ids: Collection[str] | None = None
    kernel: str | None = None
    format: str | None = None
    operation: str | None = None
    key: str | None = None
    result: str | None = None  # its outcome

    def of_check(self) -> Iterator[ColumnElement[bool]]:
        """As conditions on a self-check."""
        row = SelfCheck
        for column, value in (
            (row.device_class, self.device_class),
            (row.device, self.device),
            (row.level, self.level),
            (row.outcome, self.outcome),
        ):
            if value is not None:
                yield column == value
        if self.since is not None:
            yield row.created_at >= self.since
        if self.ids is not None:
            yield row.id.in_(self.ids)

    def of_result(self) -> Iterator[ColumnElement[bool]]:
        """As conditions on a result."""
        row = SelfCheckResult
        for column, value in (
            (row.kernel, self.kernel),
            (row.format, self.format),
            (row.operation, self.operation),
            (row.key, self.key),
            (row.outcome, self.result),
        ):
            if value is not None:
                yield column == value


ANY: Final = Wanted()


def save(session: Session, row: SelfCheck, results: Iterable[SelfCheckResult]) -> None:
    """Store a self-check with its results; one that is there stands."""
    if insert_new(session, SelfCheck, [values(row)]):
        owner = {"self_check_id": row.id, "project_id": row.project_id}
        insert_new(session, SelfCheckResult, [{**values(result), **owner} for result in results])


def get(session: Session, project_id: str, id_: str) -> SelfCheck | None:
    """The self-check with an id."""
    query = select(SelfCheck).where(SelfCheck.project_id == project_id, SelfCheck.id == id_)
    return session.scalars(query).one_or_none()


def newest(session: Session, project_id: str) -> SelfCheck | None:
    """The last one."""
    query = select(SelfCheck).where(SelfCheck.project_id == project_id).order_by(*_NEWEST).limit(1)
    return session.scalars(query).one_or_none()


def page(
    session: Session, project_id: str, *, limit: int, cursor: str | None = None, wanted: Wanted = ANY
) -> Page[SelfCheck]:
    """Self-checks, newest first. Raises: BadCursor."""
    query = select(SelfCheck).where(SelfCheck.project_id == project_id, *wanted.of_check())
    held = list(wanted.of_result())
    if held:
        query = query.where(exists().where(SelfCheckResult.self_check_id == SelfCheck.id, *held))
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(SelfCheck.id < after[0])
    rows = session.scalars(query.order_by(SelfCheck.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def results(session: Session, ids: Collection[str], wanted: Wanted = ANY) -> dict[str, list[SelfCheckResult]]:
    """What self-checks found, kernel by kernel, by their ids."""
    query = select(SelfCheckResult).where(SelfCheckResult.self_check_id.in_(ids), *wanted.of_result())
    found: dict[str, list[SelfCheckResult]] = {id_: [] for id_ in ids}
    for row in session.scalars(query.order_by(SelfCheckResult.self_check_id, SelfCheckResult.ordinal)):
        found[row.self_check_id].append(row)
    return found


def counts(session: Session, ids: Collection[str]) -> dict[str, dict[str, int]]:
    """How many kernels came out how, by self-check."""
    row = SelfCheckResult
    query = select(row.self_check_id, row.outcome, func.count()).where(row.self_check_id.in_(ids))
    found: dict[str, dict[str, int]] = {id_: {} for id_ in ids}
    for id_, outcome, number in session.execute(query.group_by(row.self_check_id, row.outcome)):
        found[id_][outcome] = number
    return found


def latest(
    session: Session, project_id: str, *, device_class: str | None = None, device_key: str | None = None
) -> list[SelfCheck]:
    """The newest self-check of every device with each state of its kernels at each level, newest first.

    What differs in anything is another device.
    """
    of = [SelfCheck.project_id == project_id]
    if device_class is not None:
        of.append(SelfCheck.device_class == device_class)
    if device_key is not None:
        of.append(SelfCheck.device_key == device_key)
    query = _newest_of_each((SelfCheck.device_key, SelfCheck.kernels_key, SelfCheck.level), of)
    return list(session.scalars(query.order_by(*_NEWEST).limit(2 * _MOST_DEVICES)))


def devices_here(session: Session, project_id: str) -> frozenset[str]:
    """Keys of the devices that some machine had when it was checked last: a driver that was replaced leaves none."""
    query = _newest_of_each((SelfCheck.machine, SelfCheck.device), [SelfCheck.project_id == project_id])
    return frozenset(row.device_key for row in session.scalars(query))


def _newest_of_each(
    together: Sequence[InstrumentedAttribute[Any]], of: Sequence[ColumnElement[bool]]
) -> Select[SelfCheck]:
    place = func.row_number().over(partition_by=together, order_by=_NEWEST).label("place")
    ranked = select(SelfCheck.id, place).where(*of).subquery()
    return select(SelfCheck).join(ranked, ranked.c.id == SelfCheck.id).where(ranked.c.place == 1)


def thin_out(session: Session, project_id: str, device_key: str) -> int:
    """Forget all but the last checks of a device that workers made as they started; what jobs asked for stays."""
    row = SelfCheck
    query = select(row.id).where(
        row.project_id == project_id, row.device_key == device_key, row.job_id.is_(None)
    )
    old = list(session.scalars(query.order_by(row.id.desc()).offset(_KEPT).limit(_KEPT)))
    if old:
        session.execute(delete(SelfCheckResult).where(SelfCheckResult.self_check_id.in_(old)))
        session.execute(delete(SelfCheck).where(SelfCheck.id.in_(old)))
    return len(old)
