"""Checkpoints: the weights that recipes read."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import TypeAdapter

from service import checkpoints
from service.api import body, examples
from service.api.parameters import CallerParam, CheckpointId, Paging, PartsParam, SubmitCaller
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.content import CheckpointRead, CheckpointSent, CheckpointWithFiles, FileRead, named
from service.errors import BlobsMissing, CheckpointNotFound, InvalidRequest, TooManyFiles
from service.parts import Parts

router = APIRouter(prefix="/v1/checkpoints", tags=["sources"])
CHECKPOINT = TypeAdapter(CheckpointSent)


@router.post(
    "",
    status_code=201,
    summary="Make a checkpoint",
    openapi_extra=body.request_body(CHECKPOINT, one_file_and_its_claims=examples.CHECKPOINT),
    responses={
        200: {
            "model": CheckpointWithFiles,
            "description": "The project holds it, with these claims, already.",
        },
        **describe(*body.BODY_ERRORS, TooManyFiles, BlobsMissing),
    },
)
def push(
    response: Response,
    parts: PartsParam,
    caller: SubmitCaller,
    sent: Annotated[body.Body[CheckpointSent], Depends(body.strict(CHECKPOINT))],
) -> CheckpointWithFiles:
    """Out of files whose content was pushed before: weights, and whatever else a recipe copies."""
    value = sent.value
    checkpoint, new = checkpoints.push(
        parts,
        caller.project_id,
        named(value.files),
        repository=value.repository,
        revision=value.revision,
        license=value.license,
    )
    response.headers["Location"] = f"/v1/checkpoints/{checkpoint.id}"
    response.status_code = 201 if new else 200
    return _whole(parts, caller.project_id, checkpoint.id)


@router.get("", summary="Checkpoints, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: CallerParam, query: Annotated[Paging, Query()]) -> PageOf[CheckpointRead]:
    """What the project holds."""
    query.within(parts)
    found = checkpoints.page(parts, caller.project_id, limit=query.limit, cursor=query.cursor)
    return PageOf(items=[CheckpointRead.of(row) for row in found.items], next=found.next)


@router.get("/{checkpoint}", summary="A checkpoint", responses=describe(CheckpointNotFound, InvalidRequest))
def one(checkpoint: CheckpointId, parts: PartsParam, caller: CallerParam) -> CheckpointWithFiles:
    """With its files."""
    return _whole(parts, caller.project_id, checkpoint)


def _whole(parts: Parts, project_id: str, checkpoint_id: str) -> CheckpointWithFiles:
    row, files = checkpoints.find(parts, project_id, checkpoint_id)
    return CheckpointWithFiles.of(row, files=[FileRead.of(file) for file in files])
