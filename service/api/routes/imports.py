"""Imports: what jobs of type `import` have fetched."""

from typing import Annotated

from fastapi import APIRouter, Query

from service import imports
from service.api.parameters import CallerParam, ImportId, Paging, PartsParam
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.imports import ImportRead
from service.errors import ImportNotFound, InvalidRequest

router = APIRouter(prefix="/v1/imports", tags=["uploads"])


@router.get("", summary="Imports, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: CallerParam, query: Annotated[Paging, Query()]) -> PageOf[ImportRead]:
    """What was to be fetched, and what was stored of it."""
    query.within(parts)
    found = imports.page(parts, caller.project_id, limit=query.limit, cursor=query.cursor)
    return PageOf(items=[ImportRead.of(view) for view in found.items], next=found.next)


@router.get("/{id}", summary="An import", responses=describe(ImportNotFound, InvalidRequest))
def one(
    id: ImportId,  # noqa: A002  as the address has it
    parts: PartsParam,
    caller: CallerParam,
) -> ImportRead:
    """With the digests of its files, once its job has passed."""
    return ImportRead.of(imports.one(parts, caller.project_id, id))
