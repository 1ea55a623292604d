"""Queries over conversions: what was asked, how each object was made, and findings."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.records import findings as noted
from service.records.events import owner, unanswered
from service.records.models import Conversion, ConversionFinding, ConversionObject
from service.records.pages import Page, cut, decode, encode, fetched, ordinal
from service.records.rows import insert_new, values
from service.records.types import now

_OBJECTS = "conversion.objects"


def add(session: Session, conversion: Conversion) -> Conversion:
    """The stored conversion: `conversion`, or the one that its job has already."""
    insert_new(session, Conversion, [values(conversion)])
    stored = by_job(session, conversion.job_id)
    if stored is None:
        raise RuntimeError("the id of a conversion is taken")
    return stored


def conversion(session: Session, project_id: str, conversion_id: str) -> Conversion | None:
    """The conversion with an id."""
    query = select(Conversion).where(Conversion.project_id == project_id, Conversion.id == conversion_id)
    return session.scalars(query).one_or_none()


def by_job(session: Session, job_id: str) -> Conversion | None:
    """The conversion of a job."""
    return session.scalars(select(Conversion).where(Conversion.job_id == job_id)).one_or_none()


def by_artifact(session: Session, artifact_id: str) -> Conversion | None:
    """The first conversion that made an artifact: later ones may have made the same bytes again."""
    query = select(Conversion).where(Conversion.artifact_id == artifact_id)
    return session.scalars(query.order_by(Conversion.id).limit(1)).one_or_none()


def save(
    session: Session,
    conversion_id: str,
    *,
    verdict: str,
    document: dict[str, Any],
    artifact_id: str | None = None,
    **how: Any,
) -> None:
    """Set verdict, document and what was made, unless they are set; `verdict` is `written` or `refused`.

    `how` holds `target_digest`, `command`, `environment`, `host` and `record`.

    Raises: JobOver.
    """
    found = unanswered(session, Conversion, conversion_id)
    if found is None:
        return
    found.verdict = verdict
    found.document = document
    found.artifact_id = artifact_id
    for column, value in how.items():
        setattr(found, column, value)
    found.finished_at = now()
    session.flush()


def save_objects(session: Session, conversion_id: str, rows: Iterable[ConversionObject]) -> None:
    """Store how objects were made; what is there stands. Raises: JobOver."""
    whose = _owner(session, conversion_id)
    insert_new(session, ConversionObject, ({**values(row), **whose} for row in rows))


def save_findings(session: Session, conversion_id: str, rows: Iterable[ConversionFinding]) -> None:
    """Store findings; what is there by number stands. Raises: JobOver."""
    noted.save(session, ConversionFinding, _owner(session, conversion_id), rows)


def _owner(session: Session, conversion_id: str) -> dict[str, str]:
    return {"conversion_id": conversion_id, "project_id": owner(session, Conversion, conversion_id)}


def objects(
    session: Session, conversion_id: str, *, limit: int, cursor: str | None = None
) -> Page[ConversionObject]:
    """How each object was made, in the order of the recipe. Raises: BadCursor."""
    query = select(ConversionObject).where(ConversionObject.conversion_id == conversion_id)
    after = decode(cursor, _OBJECTS, ordinal)
    if after is not None:
        query = query.where(ConversionObject.ordinal > after[0])
    rows = session.scalars(query.order_by(ConversionObject.ordinal).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_OBJECTS, row.ordinal))


def findings(
    session: Session,
    conversion_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    severity: str | None = None,
    code: str | None = None,
    check: str | None = None,
    object: str | None = None,  # noqa: A002  as the column
) -> Page[ConversionFinding]:
    """Findings in the order they were made. Raises: BadCursor."""
    wanted = {"severity": severity, "code": code, "check": check, "object": object}
    owner = ConversionFinding.conversion_id
    return noted.page(session, ConversionFinding, owner, conversion_id, limit=limit, cursor=cursor, **wanted)
