"""What was done in a project, for its administrators."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from service.api.parameters import AdminCaller, Paging, PartsParam
from service.api.problems import describe
from service.api.schemas.access import AuditRead
from service.api.schemas.base import PageOf
from service.errors import InvalidRequest
from service.records import audit

router = APIRouter(prefix="/v1/audit", tags=["access"])


class AuditPaging(Paging):
    """Entries by action."""

    action: str | None = Field(None, max_length=60, examples=["token.created"])


@router.get("", summary="The log, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: AdminCaller, query: Annotated[AuditPaging, Query()]) -> PageOf[AuditRead]:
    """Who did what and when, with the id of the request. Entries are only ever added, and hold no secret."""
    query.within(parts)
    with parts.database.read() as session:
        found = audit.entries(
            session, caller.project_id, limit=query.limit, cursor=query.cursor, action=query.action
        )
    return PageOf(items=[AuditRead.of(row) for row in found.items], next=found.next)
