"""What routes ask for by type: the parts of the service, the caller, digests, ids and pages."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import Depends, Path
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from service.api import examples
from service.auth import Caller
from service.entry import bearer
from service.errors import Fault, InvalidRequest, RouteNotFound, ScopeMissing, Unauthorized
from service.parts import Parts
from service.scopes import ADMIN, GATE, SUBMIT, Scope

DIGEST = r"^sha256:[0-9a-f]{64}$"
ID = r"^[0-9a-f]{32}$"
DEFAULT_LIMIT: Final = 50
NOTHING_HERE: Final = "There is nothing at this address."

_bearer = HTTPBearer(
    auto_error=False,
    description="A token of a project: the one that `serve` printed at its first start, or one made since.",
)


async def _parts(request: Request) -> Parts:
    # Asked on the loop: to hand it to a thread takes longer than it does.
    parts: Parts = request.app.state.parts
    return parts


PartsParam = Annotated[Parts, Depends(_parts)]


def address_of(request: Request) -> str:
    """Where a request comes from, by the word of proxies that the server trusts."""
    return request.client.host if request.client is not None else ""


def caller_of(
    request: Request,
    parts: PartsParam,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Caller:
    """Who sends this request. Raises: Unauthorized, RateLimited."""
    # A scheme of another kind is a try that fails, not somebody without a token.
    other = "" if "authorization" in request.headers else None
    return bearer(parts, credentials.credentials if credentials is not None else other, address_of(request))


CallerParam = Annotated[Caller, Depends(caller_of)]  # anybody who may read


def _with(scope: Scope) -> Callable[..., Any]:
    async def scoped(caller: CallerParam) -> Caller:
        if not caller.may(scope):
            if caller.token_id is None:
                raise Unauthorized()  # a token would help
            raise ScopeMissing(scope)
        return caller

    return scoped


async def _admin(caller: CallerParam) -> Caller:
    # What is an administrator's business is not there for anybody else.
    if not caller.may(ADMIN):
        raise RouteNotFound(NOTHING_HERE)
    return caller


_submit, _gate = _with(SUBMIT), _with(GATE)
NEEDS: Final = {
    _submit: SUBMIT,
    _gate: GATE,
    _admin: ADMIN,
}  # the scope that a route with this dependency needs

SubmitCaller = Annotated[Caller, Depends(_submit)]  # who may push, start and cancel
GateCaller = Annotated[Caller, Depends(_gate)]  # who may decide what is released
AdminCaller = Annotated[Caller, Depends(_admin)]  # who may give others access


def digest_path(example: str) -> Any:
    """A digest in a path."""
    return Path(pattern=DIGEST, description="`sha256:` and 64 hex digits.", examples=[example])


def id_path(example: str) -> Any:
    """An id in a path."""
    return Path(pattern=ID, description="32 hex digits.", examples=[example])


BlobDigest = Annotated[str, digest_path(examples.CONTENT_DIGEST)]
ArtifactDigest = Annotated[str, digest_path(examples.CONTENT_DIGEST)]
RecipeDigest = Annotated[str, digest_path(examples.RECIPE_DIGEST)]
TargetDigest = Annotated[str, digest_path(examples.TARGET_DIGEST)]
TensorIdentity = Annotated[str, digest_path(examples.IDENTITY)]
CheckpointId = Annotated[str, id_path(examples.CHECKPOINT_ID)]
JobId = Annotated[str, id_path(examples.JOB_ID)]
DoneJobId = Annotated[str, id_path(examples.DONE_ID)]
RunId = Annotated[str, id_path(examples.DONE_ID)]
ConversionId = Annotated[str, id_path(examples.CONVERSION_ID)]
ComparisonId = Annotated[str, id_path(examples.COMPARISON_ID)]
SelfCheckId = Annotated[str, id_path(examples.SELFCHECK_ID)]
ImportId = Annotated[str, id_path(examples.IMPORT_ID)]
UploadId = Annotated[str, id_path(examples.UPLOAD_ID)]
GivenUpId = Annotated[str, id_path(examples.OLD_UPLOAD_ID)]
CampaignId = Annotated[str, id_path(examples.CAMPAIGN_ID)]
SchemeCheckId = Annotated[str, id_path(examples.SCHEME_CHECK_ID)]
TokenId = Annotated[str, id_path(examples.TOKEN_ID)]
TrustId = Annotated[str, id_path(examples.TRUST_ID)]


class Paging(BaseModel):
    """Where in a list to go on, and how far; other parameters than those of the list are refused."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(DEFAULT_LIMIT, ge=1, description="Most items on this page.", examples=[2])
    cursor: str | None = Field(None, max_length=4_000, description="`next` of the page before.")

    def within(self, parts: Parts) -> "Paging":
        """Itself. Raises: InvalidRequest when the page is larger than the settings allow."""
        most = parts.settings.max_page
        if self.limit > most:
            fault = Fault("query", "limit", f"at most {most:,} items come on one page")
            raise InvalidRequest(f"{self.limit:,} items are too many for one page.", fault)
        return self
