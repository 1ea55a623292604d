"""What runs, conversions, comparisons and checks of schemes have in common: each is the answer to one job, given once."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.records.events import require_open
from service.records.models import (
    Base,
    Comparison,
    ComparisonFinding,
    ComparisonObject,
    Conversion,
    ConversionFinding,
    ConversionObject,
    Finding,
    Import,
    Result,
    Run,
    SchemeCheck,
)
from service.records.rows import insert_new, values
from service.records.types import now

_PROJECTS: Final = "projects and jobs"  # of a session: of the answers that it has written to
OfJob = TypeVar("OfJob", Run, Conversion, Comparison, SchemeCheck, Import)

_OWNS: Final = {
    Run: "run_id",
    Conversion: "conversion_id",
    Comparison: "comparison_id",
}  # column of its parts
_PARTS: Final[tuple[tuple[str, type[Run | Conversion | Comparison], tuple[type[Base], ...]], ...]] = (
    (_OWNS[Run], Run, (Result, Finding)),
    (_OWNS[Conversion], Conversion, (ConversionObject, ConversionFinding)),
    (_OWNS[Comparison], Comparison, (ComparisonObject, ComparisonFinding)),
)


def add(session: Session, row: OfJob) -> OfJob:
    """The stored one: `row`, or the one that its job has already."""
    model = type(row)
    insert_new(session, model, [values(row)])
    stored = by_job(session, model, row.job_id)
    if stored is None:
        raise RuntimeError(f"the id {row.id} is taken")
    return stored


def of_project(session: Session, model: type[OfJob], project_id: str, id_: str) -> OfJob | None:
    """The one with an id."""
    return session.scalars(select(model).where(model.project_id == project_id, model.id == id_)).one_or_none()


def by_job(session: Session, model: type[OfJob], job_id: str) -> OfJob | None:
    """That of a job."""
    return session.scalars(select(model).where(model.job_id == job_id)).one_or_none()


def of_jobs(
    session: Session, model: type[OfJob], project_id: str, job_ids: Collection[str]
) -> dict[str, OfJob]:
    """Those of jobs, by the id of their job."""
    query = select(model).where(model.project_id == project_id, model.job_id.in_(job_ids))
    return {row.job_id: row for row in session.scalars(query)}


def save(session: Session, model: type[OfJob], id_: str, answer: Mapping[str, Any]) -> None:
    """Set these columns and the end, unless there is a verdict; its job is found open and locked. Raises: JobOver."""
    _project(session, model, id_)
    found = session.get(model, id_, with_for_update={"key_share": True}, populate_existing=True)
    if found is None or found.verdict is not None:
        return
    for column, value in answer.items():
        setattr(found, column, value)
    found.finished_at = now()
    session.flush()


def save_parts(
    session: Session, model: type[OfJob], id_: str, part: type[Base], rows: Iterable[Base]
) -> None:
    """Store results, objects or findings of it; what is there by its key stands. Raises: JobOver."""
    owner = {_OWNS[model]: id_, "project_id": _project(session, model, id_)}
    insert_new(session, part, ({**values(row), **owner} for row in rows))


def drop_parts(session: Session, job_id: str) -> None:
    """Forget what was stored so far of the answer to a job that is open: it is worked out anew."""
    for column, whole, parts in _PARTS:
        ids = select(whole.id).where(whole.job_id == job_id)
        for part in parts:
            gone = delete(part).where(getattr(part, column).in_(ids))
            session.execute(gone.execution_options(synchronize_session=False))


def _project(session: Session, model: type[OfJob], id_: str) -> str:
    # Neither ever changes, so the database is asked once in a session.
    known: dict[tuple[type[Base], str], tuple[str, str]] = session.info.setdefault(_PROJECTS, {})
    if (model, id_) not in known:
        query = select(model.project_id, model.job_id).where(model.id == id_)
        project_id, job_id = session.execute(query).one()
        known[model, id_] = (project_id, job_id)
    project_id, job_id = known[model, id_]
    require_open(session, job_id)
    return project_id
