"""A row in every table of a tenant's data, made from the models, so that a new table is never forgotten."""

import re
from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Table, func, select
from sqlalchemy.orm import Session

from service.records.models import Audit, Base, Project
from service.records.types import Utc, new_id, now

_ONE_OF = re.compile(r"(\w+) IN \('(\w+)'")


def of_project() -> list[Table]:
    """Every table with a column of the project but the log, parents first."""
    return [
        table
        for table in Base.metadata.sorted_tables
        if "project_id" in table.c and table.name != Audit.__tablename__
    ]


def fill(session: Session, project_id: str, times: int = 1) -> None:
    """Rows of a project in each of them, which hang on each other."""
    session.add(Project(id=project_id, name=f"project {project_id}", created_at=now()))
    session.flush()
    for _ in range(times):
        made: dict[str, dict[str, Any]] = {"projects": {"id": project_id}}
        for table in of_project():
            made[table.name] = {column.name: _value(table, column, made) for column in table.columns}
            session.execute(table.insert().values(made[table.name]))


def _value(table: Table, column: Any, made: dict[str, dict[str, Any]]) -> Any:
    if column.foreign_keys:
        parent = next(iter(column.foreign_keys)).column
        return made[parent.table.name][parent.name]
    for constraint in table.constraints:
        if isinstance(constraint, CheckConstraint):
            known = _ONE_OF.match(str(constraint.sqltext))
            if known is not None and known[1] == column.name:
                return known[2]
    kind = column.type.python_type if not hasattr(column.type, "impl") else None
    if isinstance(column.type, Utc):
        return now()
    if kind is bool:
        return False
    if kind in (int, float):
        return 1
    length = getattr(column.type, "length", None)
    return (new_id() * 3)[: length or 32]


def counts(session: Session, project_id: str) -> dict[str, int]:
    """How many rows of a project lie in which table, those without any left out."""
    found = {}
    for table in of_project():
        count = session.scalar(
            select(func.count()).select_from(table).where(table.c.project_id == project_id)
        )
        if count:
            found[table.name] = count
    return found


def moment(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(f"{text}T00:00:00+00:00")
