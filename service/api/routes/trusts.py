"""Whose signed identities open a project, for its administrators."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from service import trusts
from service.api import body, examples
from service.api.parameters import AdminCaller, Paging, PartsParam, TrustId
from service.api.problems import describe
from service.api.schemas.access import TRUST, AnyTrustSent, TrustRead
from service.api.schemas.base import PageOf
from service.errors import InvalidRequest, TrustNotFound

router = APIRouter(prefix="/v1/trusts", tags=["access"])


@router.post(
    "",
    status_code=201,
    summary="Trust an issuer",
    openapi_extra=body.request_body(
        TRUST, github_actions=examples.TRUST_GITHUB, another_issuer=examples.TRUST_OIDC
    ),
    responses=describe(*body.BODY_ERRORS),
)
def create(
    response: Response,
    parts: PartsParam,
    caller: AdminCaller,
    sent: Annotated[body.Body[AnyTrustSent], Depends(body.strict(TRUST))],
) -> TrustRead:
    """Jobs of a CI that show such an identity at POST /v1/oidc/token get a token for an hour, and hold no secret of ours.

    The issuer is asked for its keys when the first identity comes, over https and at a public address alone, unless
    `outbound_private` of the settings allows others.
    """
    asked = sent.value
    made = trusts.create(parts, caller, name=asked.name, scopes=asked.scopes, **asked.terms())
    response.headers["Location"] = f"/v1/trusts/{made.id}"
    return TrustRead.of(made)


@router.get("", summary="Trusts, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: AdminCaller, query: Annotated[Paging, Query()]) -> PageOf[TrustRead]:
    """Whose identities open this project, and for what."""
    query.within(parts)
    found = trusts.page(parts, caller, limit=query.limit, cursor=query.cursor)
    return PageOf(items=[TrustRead.of(row) for row in found.items], next=found.next)


@router.delete(
    "/{trust}", status_code=204, summary="Trust no longer", responses=describe(TrustNotFound, InvalidRequest)
)
def remove(trust: TrustId, parts: PartsParam, caller: AdminCaller) -> None:
    """Tokens that came by it open nothing from now on."""
    trusts.remove(parts, caller, trust)
