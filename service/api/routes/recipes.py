"""Recipes by their digest."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service import conditional, recipes
from service.api import examples
from service.api.body import TextBody, document_body
from service.api.parameters import DIGEST, CallerParam, Paging, PartsParam, RecipeDigest, SubmitCaller
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.content import RecipeRead
from service.errors import (
    BodyTooLarge,
    InvalidRequest,
    MediaTypeUnsupported,
    RecipeFaulty,
    RecipeNotFound,
    TargetNotFound,
    TooSlow,
)

router = APIRouter(prefix="/v1/recipes", tags=["sources"])


@router.post(
    "",
    status_code=201,
    summary="Store a recipe",
    openapi_extra=document_body("A recipe, schema `ninfer-recipe/1`.", examples.RECIPE),
    responses={
        200: {"model": RecipeRead, "description": "The project holds this recipe already."},
        **describe(TooSlow, BodyTooLarge, MediaTypeUnsupported, RecipeFaulty, TargetNotFound, InvalidRequest),
    },
)
def push(
    response: Response,
    parts: PartsParam,
    caller: SubmitCaller,
    text: TextBody,
    target: Annotated[
        str | None, Query(pattern=DIGEST, description="Digest of the target that the recipe fills.")
    ] = None,
) -> RecipeRead:
    """The body is the document. It is read whole: every fault comes back as a finding, and nothing is stored then.

    A recipe that states no formats takes those of the registered target of its identity, unless another is given.
    """
    recipe, new = recipes.push(parts, caller.project_id, text, target)
    response.headers["Location"] = f"/v1/recipes/{recipe.digest}"
    response.status_code = 201 if new else 200
    return RecipeRead.of(recipe)


@router.get("", summary="Recipes, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: CallerParam, query: Annotated[Paging, Query()]) -> PageOf[RecipeRead]:
    """What the project holds."""
    query.within(parts)
    found = recipes.page(parts, caller.project_id, limit=query.limit, cursor=query.cursor)
    return PageOf(items=[RecipeRead.of(row) for row in found.items], next=found.next)


@router.get(
    "/{digest}",
    summary="A recipe's document",
    response_class=Response,
    responses={
        200: {
            "description": "The document as it was sent first.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        **conditional.DESCRIBED,
        **describe(RecipeNotFound, InvalidRequest),
    },
)
def document(request: Request, digest: RecipeDigest, parts: PartsParam, caller: CallerParam) -> Response:
    """Byte for byte as it was sent first."""
    recipe = recipes.find(parts, caller.project_id, digest)
    if same := conditional.unchanged(request, digest):
        return same
    return Response(
        recipe.document.encode(), headers=conditional.headers(digest), media_type="application/json"
    )
