"""Artifacts, their objects and their runs."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, TypeAdapter
from starlette.concurrency import run_in_threadpool

from service import artifacts, conditional, reports
from service.api import body, examples, upload
from service.api.parameters import ArtifactDigest, CallerParam, Paging, PartsParam, SubmitCaller
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.content import (
    ArtifactRead,
    ArtifactSent,
    ArtifactWithFiles,
    FileRead,
    Kind,
    ObjectRead,
    named,
)
from service.api.schemas.runs import RunRead, Verdict
from service.contents import require_names
from service.errors import (
    ArtifactKindConflict,
    ArtifactNotFound,
    BlobsMissing,
    DigestHeaderMalformed,
    DigestMismatch,
    EntryUnclear,
    Fault,
    InvalidRequest,
    MediaTypeUnsupported,
    QuotaExceeded,
    StorageFailed,
    TooManyFiles,
)
from service.parts import Parts
from service.records.models import LISTED, Artifact

router = APIRouter(prefix="/v1/artifacts", tags=["artifacts"])
ARTIFACT = TypeAdapter(ArtifactSent)


class ArtifactPaging(Paging):
    """Artifacts of a kind, or by a part of their names and digest."""

    kind: Kind | None = None
    q: str | None = Field(
        None, max_length=200, description="A part of digest, file name, model_id or weights_id."
    )


class ObjectPaging(Paging):
    """Objects by what they are; `name` is exact."""

    kind: str | None = None
    format: str | None = None
    layout: str | None = None
    name: str | None = None
    prefix: str | None = Field(None, description="What the name begins with.")


class RunPaging(Paging):
    """Runs by verdict."""

    verdict: Verdict | None = None


@router.post(
    "",
    status_code=201,
    summary="Make an artifact",
    openapi_extra=body.request_body(ARTIFACT, files_pushed_before=examples.ARTIFACT)
    | {"x-body-alternative": "application/octet-stream"},
    responses={
        200: {"model": ArtifactWithFiles, "description": "The project holds this artifact already."},
        **describe(
            *body.BODY_ERRORS,
            DigestHeaderMalformed,
            DigestMismatch,
            TooManyFiles,
            BlobsMissing,
            EntryUnclear,
            ArtifactKindConflict,
            StorageFailed,
            QuotaExceeded,
        ),
    },
)
async def push(
    request: Request,
    response: Response,
    parts: PartsParam,
    caller: SubmitCaller,
    kind: Annotated[Kind | None, Query(description="With `name`: the body is the one file itself.")] = None,
    name: Annotated[str | None, Query(description="With `kind`: the name of the file in the body.")] = None,
) -> ArtifactWithFiles:
    """Out of files whose content was pushed before, as JSON; or out of one file that is the body itself.

    For the latter give `kind` and `name` in the query and send the bytes as anything but JSON.
    """
    if kind is None and name is None:
        async with body.place(request, parts, caller):
            sent = (await body.read(request, parts, ARTIFACT)).value
        artifact, new = await run_in_threadpool(
            artifacts.push, parts, caller.project_id, sent.kind, named(sent.files)
        )
    else:
        artifact, new = await _push_one(request, parts, caller.project_id, kind, name)
    response.headers["Location"] = f"/v1/artifacts/{artifact.digest}"
    response.status_code = 201 if new else 200
    return await run_in_threadpool(_with_files, parts, artifact)


async def _push_one(
    request: Request, parts: Parts, project_id: str, kind: Kind | None, name: str | None
) -> tuple[Artifact, bool]:
    if kind is None or name is None:
        missing = "kind" if kind is None else "name"
        raise InvalidRequest("`kind` and `name` go together.", Fault("query", missing, "is missing"))
    if body.is_json(request):
        raise MediaTypeUnsupported(
            "With `kind` and `name` the body is the file, as application/octet-stream."
        )
    require_names([name])
    artifacts.entry_of(parts, kind, {name: ""})  # before the bytes come: a name that cannot be right
    stored = await upload.receive(request, parts, project_id)
    return await run_in_threadpool(artifacts.push_one, parts, project_id, kind, name, stored)


@router.get("", summary="Artifacts, newest first", responses=describe(InvalidRequest))
def page(
    parts: PartsParam, caller: CallerParam, query: Annotated[ArtifactPaging, Query()]
) -> PageOf[ArtifactRead]:
    """What the project holds."""
    query.within(parts)
    found = artifacts.page(
        parts, caller.project_id, limit=query.limit, cursor=query.cursor, kind=query.kind, q=query.q
    )
    return PageOf(items=[ArtifactRead.of(row) for row in found.items], next=found.next)


@router.get(
    "/{digest}",
    summary="An artifact",
    response_model=ArtifactWithFiles,
    responses={**conditional.DESCRIBED, **describe(ArtifactNotFound, InvalidRequest)},
)
def one(
    request: Request, response: Response, digest: ArtifactDigest, parts: PartsParam, caller: CallerParam
) -> ArtifactWithFiles | Response:
    """With its files. It never changes once its objects are listed, and then has an entity tag."""
    artifact = artifacts.find(parts, caller.project_id, digest)
    if artifact.listing == LISTED:  # an unreadable one may yet be read
        if same := conditional.unchanged(request, digest):
            return same
        response.headers.update(conditional.headers(digest))
    return _with_files(parts, artifact)


@router.get(
    "/{digest}/objects",
    summary="Objects of an artifact",
    responses=describe(ArtifactNotFound, InvalidRequest),
)
def objects(
    digest: ArtifactDigest, parts: PartsParam, caller: CallerParam, query: Annotated[ObjectPaging, Query()]
) -> PageOf[ObjectRead]:
    """In the order of the directory; none while `listing` is `pending`."""
    query.within(parts)
    filters = query.model_dump(include={"kind", "format", "layout", "name", "prefix"})
    found = artifacts.objects(
        parts, caller.project_id, digest, limit=query.limit, cursor=query.cursor, **filters
    )
    items = [ObjectRead.model_validate(reports.object_json(row)) for row in found.items]
    return PageOf(items=items, next=found.next)


@router.get(
    "/{digest}/runs", summary="Runs of an artifact", responses=describe(ArtifactNotFound, InvalidRequest)
)
def runs(
    digest: ArtifactDigest, parts: PartsParam, caller: CallerParam, query: Annotated[RunPaging, Query()]
) -> PageOf[RunRead]:
    """Newest first."""
    query.within(parts)
    artifact = artifacts.find(parts, caller.project_id, digest)
    found = reports.runs_page(
        parts,
        caller.project_id,
        limit=query.limit,
        cursor=query.cursor,
        artifact_id=artifact.id,
        verdict=query.verdict,
    )
    return PageOf(items=[RunRead.of(view) for view in found.items], next=found.next)


def _with_files(parts: Parts, artifact: Artifact) -> ArtifactWithFiles:
    files = [FileRead.of(row) for row in artifacts.files_of(parts, artifact)]
    return ArtifactWithFiles.of(artifact, files=files)
