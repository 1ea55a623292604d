"""How much a project may hold: content and what open uploads have asked room for, against its bound."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from service.errors import QuotaExceeded, TooManyUploads
from service.records import uploads
from service.records.models import Project
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Room:
    """What a project holds, what is on its way in, and its bound; None for no bound."""

    held_bytes: int
    open_bytes: int
    quota_bytes: int | None

    @property
    def left_bytes(self) -> int | None:
        """What may still come in."""
        if self.quota_bytes is None:
            return None
        return max(0, self.quota_bytes - self.held_bytes - self.open_bytes)


def room(session: Session, settings: Settings, project_id: str) -> Room:
    """Of a project as it is now."""
    bound = _bound(settings, session.get(Project, project_id))
    return Room(uploads.held_bytes(session, project_id), uploads.open_bytes(session, project_id), bound)


def require(
    session: Session, settings: Settings, project_id: str, more_bytes: int, *, only_look: bool = False
) -> None:
    """So many bytes more have room; nobody else takes that room before the end of the transaction.

    With `only_look` they may, and any session will do. Raises: QuotaExceeded.
    """
    if _bound(settings, session.get(Project, project_id)) is None:
        return
    if not only_look:
        _lock(session, project_id)
    found = room(session, settings, project_id)
    if found.left_bytes is not None and more_bytes > found.left_bytes:
        used = found.held_bytes + found.open_bytes
        raise QuotaExceeded(
            f"{more_bytes:,} bytes more do not fit: the project holds or awaits {used:,} of {found.quota_bytes:,} bytes."
        )


def require_another_upload(session: Session, settings: Settings, project_id: str) -> None:
    """One more upload may be open; nobody else begins it before the end of the transaction. Raises: TooManyUploads."""
    _lock(session, project_id)
    most = settings.max_open_uploads
    if uploads.open_count(session, project_id) >= most:
        raise TooManyUploads(f"{most:,} uploads of the project are open, and no more may be.")


def _lock(session: Session, project_id: str) -> None:
    # Two that ask at once would both find the room that only one of them has. Rows that refer to the project may come
    # meanwhile.
    session.get(Project, project_id, with_for_update={"key_share": True}, populate_existing=True)


def require_possible(session: Session, settings: Settings, project_id: str, size: int) -> None:
    """Content of that size may be held by the project already. Raises: QuotaExceeded."""
    bound = _bound(settings, session.get(Project, project_id))
    if bound is not None and size > bound:
        raise QuotaExceeded(f"{size:,} bytes do not fit: the project may hold {bound:,} bytes in all.")


def _bound(settings: Settings, project: Project | None) -> int | None:
    if project is not None and project.quota_bytes is not None:
        return project.quota_bytes
    return settings.quota_bytes
