"""Tokens of a project, for its administrators."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from service import tokens
from service.api import body, examples
from service.api.parameters import AdminCaller, Paging, PartsParam, TokenId
from service.api.problems import describe
from service.api.schemas.access import TOKEN, TokenMade, TokenRead, TokenSent
from service.api.schemas.base import PageOf
from service.errors import InvalidRequest, TokenNotFound

router = APIRouter(prefix="/v1/tokens", tags=["access"])


class TokenPaging(Paging):
    """Tokens by kind."""

    kind: Literal["api", "oidc", "session"] | None = None


@router.post(
    "",
    status_code=201,
    summary="Make a token",
    openapi_extra=body.request_body(TOKEN, token=examples.TOKEN),
    responses=describe(*body.BODY_ERRORS),
)
def create(
    response: Response,
    parts: PartsParam,
    caller: AdminCaller,
    sent: Annotated[body.Body[TokenSent], Depends(body.strict(TOKEN))],
) -> TokenMade:
    """Its text is told in this answer and never again. It can do no more and live no longer than what made it."""
    asked = sent.value
    made = tokens.create(
        parts, caller, name=asked.name, scopes=asked.scopes, expires_in_days=asked.expires_in_days
    )
    response.headers["Location"] = f"/v1/tokens/{made.row.id}"
    return TokenMade.of_made(made)


@router.get("", summary="Tokens, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: AdminCaller, query: Annotated[TokenPaging, Query()]) -> PageOf[TokenRead]:
    """Tokens, identities that were let in, and browser sessions, without their texts. Expired ones leave the list in time."""
    query.within(parts)
    kinds = None if query.kind is None else (query.kind,)
    found = tokens.page(parts, caller, limit=query.limit, cursor=query.cursor, kinds=kinds)
    return PageOf(items=[TokenRead.of(row) for row in found.items], next=found.next)


@router.delete(
    "/{token}",
    status_code=204,
    summary="Revoke a token",
    responses=describe(TokenNotFound, InvalidRequest),
)
def revoke(token: TokenId, parts: PartsParam, caller: AdminCaller) -> None:
    """It opens nothing from now on, and no session that was opened with it does."""
    tokens.revoke(parts.database, caller.project_id, caller.actor, token)
