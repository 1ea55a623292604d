"""Provenance: where an artifact and each of its objects come from, and the same asked the other way round."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from service import conditional, object_provenance, provenance
from service.api import examples
from service.api.parameters import ArtifactDigest, CallerParam, Paging, PartsParam, TensorIdentity
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.provenance import DerivedRead, OccurrenceRead
from service.errors import ArtifactNotFound, InvalidRequest, ObjectNotFound
from service.provenance import Canonical

router = APIRouter(prefix="/v1/provenance", tags=["provenance"])


def _described(what: str) -> dict[int | str, dict[str, Any]]:
    content = {"application/json": {"schema": {"type": "object"}}}
    return {200: {"description": what, "content": content}, **conditional.DESCRIBED}


class Conditions(Paging):
    """What an artifact has to come from; every condition given must hold, and one is needed."""

    encoder_profile: str | None = Field(
        None,
        max_length=1_000,
        description="Name of a profile: registered, retired, or known of an artifact here.",
    )
    recipe: str | None = Field(
        None, max_length=1_000, description="Digest of a recipe.", examples=[examples.RECIPE_DIGEST]
    )
    target: str | None = Field(None, max_length=1_000, description="Digest of a target, or `model/weights`.")
    checkpoint: str | None = Field(None, max_length=1_000, description="Digest or id of a checkpoint.")
    format: str | None = Field(
        None, max_length=1_000, description="Name of a format that an object has: known likewise."
    )
    tool_version: str | None = Field(
        None, max_length=1_000, description="Version that made it; on the basis `verified`, that checked it."
    )
    basis: Literal["claimed", "converted", "verified"] | None = Field(
        None, description="Only artifacts of which it is known on this basis; every basis of it is told."
    )


@router.get("", summary="Artifacts by what they come from", responses=describe(InvalidRequest))
def reverse(
    parts: PartsParam, caller: CallerParam, query: Annotated[Conditions, Query()]
) -> PageOf[DerivedRead]:
    """Newest first. A claim of the artifact counts as well, and says that it is one."""
    query.within(parts)
    given = query.model_dump(exclude={"limit", "cursor", "basis"})
    found = provenance.reverse(
        parts,
        caller.project_id,
        provenance.conditions(given),
        basis=query.basis,
        limit=query.limit,
        cursor=query.cursor,
    )
    return PageOf(items=[DerivedRead.of(item) for item in found.items], next=found.next)


@router.get(
    "/artifacts/{digest}",
    summary="Where an artifact comes from",
    response_class=Response,
    responses=_described("The document `ninfer-gate/provenance/1` in its RFC 8785 form.")
    | describe(ArtifactNotFound, InvalidRequest),
)
def artifact(request: Request, digest: ArtifactDigest, parts: PartsParam, caller: CallerParam) -> Response:
    """Files, claims, conversions, recipes, targets, checkpoints, encoder profiles and runs; its entity tag is its digest.

    It grows with every conversion and run. What somebody claims stands under `claims` and `claimed`, never as verified.
    """
    return _answer(request, provenance.artifact(parts, caller.project_id, digest))


@router.get(
    "/artifacts/{digest}/object",
    summary="Where an object comes from",
    response_class=Response,
    responses=_described("The document `ninfer-gate/object-provenance/1` in its RFC 8785 form.")
    | describe(ArtifactNotFound, ObjectNotFound, InvalidRequest),
)
def object_(
    request: Request,
    digest: ArtifactDigest,
    parts: PartsParam,
    caller: CallerParam,
    name: Annotated[str, Query(description="The object's name, exactly.", examples=["a"])],
) -> Response:
    """Its source tensors with ranges of bytes and digests of files, the moves, the encoder, and what each run found."""
    return _answer(request, object_provenance.document(parts, caller.project_id, digest, name))


@router.get("/tensors/{identity}", summary="Where else a tensor lies", responses=describe(InvalidRequest))
def tensors(
    identity: TensorIdentity, parts: PartsParam, caller: CallerParam, query: Annotated[Paging, Query()]
) -> PageOf[OccurrenceRead]:
    """Every artifact that holds it, whatever it is called there, the oldest first; none for one that is not known."""
    query.within(parts)
    found = provenance.occurrences(parts, caller.project_id, identity, limit=query.limit, cursor=query.cursor)
    return PageOf(items=[OccurrenceRead.of(item) for item in found.items], next=found.next)


def _answer(request: Request, found: Canonical) -> Response:
    if same := conditional.unchanged(request, found.digest, forever=False):
        return same
    headers = conditional.headers(found.digest, forever=False)
    return Response(found.text, headers=headers, media_type="application/json")
