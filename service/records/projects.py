"""Queries over projects. One that is being deleted is found by nobody but who lists them all."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.records.events import IS_OPEN
from service.records.models import Job, Project


def add(session: Session, project: Project) -> None:
    """A new project. Raises: IntegrityError when there is one of its name, deleted ones included."""
    session.add(project)
    session.flush()


def by_id(session: Session, id_: str) -> Project | None:
    """The project, unless it is being deleted."""
    found = session.get(Project, id_)
    return None if found is None or found.deleted_at is not None else found


def by_name(session: Session, name: str) -> Project | None:
    """The project of this name, unless it is being deleted."""
    return session.scalar(select(Project).where(Project.name == name, Project.deleted_at.is_(None)))


def is_taken(session: Session, name: str) -> bool:
    """Whether a project has this name, or had it and is not all gone."""
    return session.scalar(select(Project.id).where(Project.name == name)) is not None


def all_of_them(session: Session) -> Sequence[Project]:
    """Every project by name, those that are being deleted included."""
    return session.scalars(select(Project).order_by(Project.name)).all()


def open_jobs(session: Session, project_id: str) -> dict[str, int]:
    """How many jobs that are not final a project has, by state."""
    query = select(Job.state, func.count()).where(Job.project_id == project_id, IS_OPEN)
    return dict(session.execute(query.group_by(Job.state)).all())
