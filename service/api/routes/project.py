"""The project of the caller."""

from typing import Annotated

from fastapi import APIRouter, Query

from service import projects, retention
from service.api.parameters import AdminCaller, CallerParam, PartsParam
from service.api.problems import describe
from service.api.schemas.access import ProjectRead
from service.errors import InvalidRequest, ProjectProtected

router = APIRouter(prefix="/v1/project", tags=["access"])


@router.get("", summary="This project")
def view(parts: PartsParam, caller: CallerParam) -> ProjectRead:
    """What it holds, its bounds, and who you are to it."""
    return ProjectRead.of(projects.view(parts, caller.project_id), caller)


@router.delete(
    "", status_code=204, summary="Delete this project", responses=describe(InvalidRequest, ProjectProtected)
)
def delete(
    parts: PartsParam,
    caller: AdminCaller,
    confirm: Annotated[str, Query(max_length=100, description="The name of the project, once more.")],
) -> None:
    """Its tokens open nothing from now on, its jobs are cancelled, and all that it holds is taken away, evidence included."""
    retention.delete_project(parts.database, caller.project_id, confirm=confirm, actor=caller.actor)
