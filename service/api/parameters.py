"""What routes ask for by type: the parts of the service, the caller, digests, ids and pages."""

from typing import Annotated, Any

from fastapi import Depends, Path
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from service.api import examples
from service.auth import Caller, authenticate
from service.errors import Fault, InvalidRequest, RouteNotFound, ScopeMissing
from service.parts import Parts
from service.scopes import ADMIN, GATE, SUBMIT, Scope

DIGEST = r"^sha256:[0-9a-f]{64}$"
ID = r"^[0-9a-f]{32}$"
DEFAULT_LIMIT = 50

_bearer = HTTPBearer(auto_error=False, description="The token that `serve` printed at its first start.")


def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


PartsParam = Annotated[Parts, Depends(_parts)]


def _caller(
    parts: PartsParam, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> Caller:
    return authenticate(parts.database, credentials.credentials if credentials is not None else None)


CallerParam = Annotated[Caller, Depends(_caller)]  # anybody who may read


def _with(scope: Scope) -> Any:
    def caller(caller: CallerParam) -> Caller:
        if not caller.may(scope):
            raise ScopeMissing(scope)
        return caller

    return Depends(caller)


def _admin(caller: CallerParam) -> Caller:
    # What is an administrator's business is not there for anybody else.
    if not caller.may(ADMIN):
        raise RouteNotFound("There is nothing here.")
    return caller


SubmitCaller = Annotated[Caller, _with(SUBMIT)]  # who may push, start and cancel
GateCaller = Annotated[Caller, _with(GATE)]  # who may decide what is released
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
SchemeCheckId = Annotated[str, id_path(examples.SCHEME_CHECK_ID)]


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
