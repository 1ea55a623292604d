"""Queries over conversions: what was asked, how each object was made, and findings."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.records import answers
from service.records import findings as noted
from service.records.models import Conversion, ConversionFinding, ConversionObject
from service.records.pages import Page, cut, decode, encode, fetched, ordinal

_OBJECTS = "conversion.objects"


def add(session: Session, conversion: Conversion) -> Conversion:
    """The stored conversion: `conversion`, or the one that its job has already."""
    return answers.add(session, conversion)


def conversion(session: Session, project_id: str, conversion_id: str) -> Conversion | None:
    """The conversion with an id."""
    return answers.of_project(session, Conversion, project_id, conversion_id)


def by_job(session: Session, job_id: str) -> Conversion | None:
    """The conversion of a job."""
    return answers.by_job(session, Conversion, job_id)


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

    `how` holds `target_digest`, `command`, `environment`, `host`, `record` and `produced`.

    Raises: JobOver.
    """
    answer = {"verdict": verdict, "document": document, "artifact_id": artifact_id, **how}
    answers.save(session, Conversion, conversion_id, answer)


def save_objects(session: Session, conversion_id: str, rows: Iterable[ConversionObject]) -> None:
    """Store how objects were made; what is there stands. Raises: JobOver."""
    answers.save_parts(session, Conversion, conversion_id, ConversionObject, rows)


def save_findings(session: Session, conversion_id: str, rows: Iterable[ConversionFinding]) -> None:
    """Store findings; what is there by number stands. Raises: JobOver."""
    answers.save_parts(session, Conversion, conversion_id, ConversionFinding, rows)


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
