"""A signed identity in exchange for a token: the one address under /v1 that is for who has none."""

from typing import Final

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from service import oidc
from service.api import body, examples
from service.api.parameters import PartsParam, address_of
from service.api.problems import describe
from service.api.schemas.access import IDENTITY, Granting
from service.errors import IdentityRefused, Internal, RateLimited, Unavailable
from service.issuers import NotKept

router = APIRouter(prefix="/v1/oidc", tags=["access"])
_MOST_BYTES: Final = 64 << 10  # of a body of whoever it may be


@router.post(
    "/token",
    status_code=201,
    summary="Exchange a signed identity for a token",
    openapi_extra=body.request_body(IDENTITY, identity=examples.IDENTITY_SENT),
    responses=describe(*body.BODY_ERRORS, IdentityRefused, RateLimited, Internal, Unavailable),
)
async def exchange(request: Request, parts: PartsParam) -> Granting:
    """The token lives for an hour. Its scopes are those of the trust that fits; whatever is wrong is answered alike."""
    address = address_of(request)
    parts.rates.require_few_failures(address)
    parts.rates.request(None, address)
    sent = await body.read(request, parts, IDENTITY, _MOST_BYTES)
    asked = (parts.database, parts.issuers, sent.value.token.strip(), sent.value.project)
    try:
        try:
            granted = await run_in_threadpool(oidc.exchange, *asked, ask=False)
        except NotKept as needed:
            async with parts.asking(needed.projects):
                granted = await run_in_threadpool(oidc.exchange, *asked)
    except IdentityRefused:
        parts.rates.failure(address)
        raise
    return Granting.of(granted)
