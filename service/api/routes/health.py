"""Whether the service lives, and whether it can work; both answer without a token and say no more than that."""

from collections.abc import Callable
from typing import Literal

import structlog
from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError

from ninfer_core.errors import NinferError
from service.api.parameters import PartsParam
from service.api.problems import describe
from service.api.schemas.base import Answer
from service.errors import NotReady
from service.parts import Parts
from service.records.database import head, revision

router = APIRouter(tags=["health"])
log = structlog.get_logger()


class Health(Answer):
    """All is well."""

    status: Literal["ok"] = "ok"


@router.get("/healthz", summary="Whether the service lives")
async def healthz() -> Health:  # on the loop: threads may all be waiting for the database
    """It answers: that is all it says."""
    return Health()


@router.get("/readyz", summary="Whether the service can work", responses=describe(NotReady))
def readyz(parts: PartsParam) -> Health:
    """Database reachable and at the right revision, content store writable."""
    reasons = [reason for check in (_database, _blobs) if (reason := _failing(check, parts)) is not None]
    if reasons:
        raise NotReady("The service cannot work: " + "; ".join(reasons) + ".", reasons=reasons)
    return Health()


def _failing(check: Callable[[Parts], str | None], parts: Parts) -> str | None:
    try:
        return check(parts)
    except (SQLAlchemyError, NinferError, OSError) as error:
        # The log says why; what is told without a token names no address and no path.
        log.error("service.not_ready", check=check.__name__.strip("_"), error=str(error))
        return f"the {'database' if check is _database else 'content store'} cannot be used"


def _database(parts: Parts) -> str | None:
    return (
        None
        if revision(parts.database) == head()
        else "the database is at another revision; run `ninfer-gate migrate`"
    )


def _blobs(parts: Parts) -> None:
    parts.blobs.require_writable()
