"""Projects: made and bounded by who runs the service, looked at by who is in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ninfer_core.errors import Usage
from service import admission, quotas
from service.auth import COMMAND_LINE
from service.errors import Unauthorized
from service.parts import Parts
from service.quotas import Room
from service.records import audit, projects
from service.records.database import Database
from service.records.models import Project
from service.records.types import new_id, now

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a project may take; None for what the settings say."""

    quota_bytes: int | None = None
    max_running_jobs: int | None = None

    def __post_init__(self) -> None:
        """Raises: Usage for a bound that is none."""
        if self.quota_bytes is not None and not 0 <= self.quota_bytes < 1 << 63:
            raise Usage("a quota is a number of bytes, 0 or more")
        if self.max_running_jobs is not None and not 1 <= self.max_running_jobs < 1 << 31:
            raise Usage("the number of jobs that run at a time is 1 or more")


def add(database: Database, name: str, bounds: Bounds) -> Project:
    """A new project, without tokens. Raises: Usage."""
    if not _NAME.fullmatch(name):
        raise Usage(
            "a project is called by 1 to 63 of a-z, 0-9, `.`, `_` and `-`, and begins with a letter or digit"
        )
    row = Project(
        id=new_id(),
        name=name,
        quota_bytes=bounds.quota_bytes,
        max_running_jobs=bounds.max_running_jobs,
        created_at=now(),
    )
    with database.write() as session:
        if projects.is_taken(session, name):
            raise Usage(f"there is a project called {name}, or one that is being deleted")
        projects.add(session, row)
        audit.add(session, row.id, COMMAND_LINE, "project.added", name, _told(row))
    return row


def named(database: Database, name: str) -> Project:
    """The project of this name. Raises: Usage."""
    with database.read() as session:
        found = projects.by_name(session, name)
    if found is None:
        raise Usage("there is no project of this name; `ninfer-gate project list` has them all")
    return found


def listed(database: Database) -> Sequence[Project]:
    """Every project by name."""
    with database.read() as session:
        return projects.all_of_them(session)


def change(database: Database, name: str, changes: dict[str, int | None]) -> Project:
    """Other bounds, by the names of `Bounds`; None goes back to the settings. Raises: Usage."""
    with database.write() as session:
        found = projects.by_name(session, name)
        if found is None:
            raise Usage("there is no project of this name; `ninfer-gate project list` has them all")
        was = _told(found)
        bounds = Bounds(**{**was, **changes})
        found.quota_bytes, found.max_running_jobs = bounds.quota_bytes, bounds.max_running_jobs
        audit.add(session, found.id, COMMAND_LINE, "project.changed", name, {"was": was, "is": _told(found)})
    return found


@dataclass(frozen=True, slots=True)
class View:
    """A project as those in it see it."""

    project: Project
    room: Room
    max_running_jobs: int | None  # the bound that holds
    jobs: dict[str, int]  # open ones by state


def view(parts: Parts, project_id: str) -> View:
    """The project, what it holds, and its bounds. Raises: Unauthorized."""
    with parts.database.read() as session:
        project = projects.by_id(session, project_id)
        if project is None:
            raise Unauthorized()  # it was deleted since its caller was let in
        return View(
            project,
            quotas.room(session, parts.settings, project_id),
            admission.bound_of(parts.settings, project),
            projects.open_jobs(session, project_id),
        )


def _told(project: Project) -> dict[str, int | None]:
    return {"quota_bytes": project.quota_bytes, "max_running_jobs": project.max_running_jobs}
