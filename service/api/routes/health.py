"""Whether the service lives, and whether it can work; both answer without a token and say no more than that."""

import tempfile
from collections.abc import Callable
from typing import Final, Literal

import structlog
from fastapi import APIRouter
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from ninfer_core.errors import NinferError
from service.api.parameters import PartsParam
from service.api.problems import describe
from service.api.schemas.base import Answer
from service.errors import NotReady
from service.parts import Parts
from service.records import gauges
from service.records.database import head, revision

router = APIRouter(tags=["health"])
log = structlog.get_logger()


class Health(Answer):
    """All is well."""

    status: Literal["ok"] = "ok"


class Ready(Health):
    """The service can work; `warnings` says what it does without."""

    warnings: list[str] = Field(default=[], examples=[[]])


@router.get("/healthz", summary="Whether the service lives")
async def healthz() -> Health:  # on the loop: threads may all be waiting for the database
    """It answers: that is all it says."""
    return Health()


@router.get("/readyz", summary="Whether the service can work", responses=describe(NotReady))
def readyz(parts: PartsParam) -> Ready:
    """Database reachable and at the right revision, durable engine reachable, content store and spool folder writable.

    That no worker is alive is a warning: content is taken, jobs wait.
    """
    reasons = [reason for name, check in _CHECKS.items() if (reason := _failing(name, check, parts))]
    if reasons:
        raise NotReady("The service cannot work: " + "; ".join(reasons) + ".", reasons=reasons)
    return Ready(warnings=[warning] if (warning := _failing("list of workers", _workers, parts)) else [])


def _failing(name: str, check: Callable[[Parts], str | None], parts: Parts) -> str | None:
    try:
        return check(parts)
    except Exception as error:
        # The log says why; what is told without a token names no address and no path.
        foreseen = isinstance(error, SQLAlchemyError | NinferError | OSError)
        log.error("service.not_ready", check=name, error=str(error), exc_info=not foreseen)
        return f"the {name} cannot be used"


def _database(parts: Parts) -> str | None:
    return (
        None
        if revision(parts.database) == head()
        else "the database is at another revision; run `ninfer-gate migrate`"
    )


def _engine(parts: Parts) -> None:
    parts.queue.require_ready()


def _blobs(parts: Parts) -> None:
    parts.blobs.require_writable()


def _spool(parts: Parts) -> None:
    with tempfile.TemporaryFile(dir=parts.blobs.scratch) as file:
        file.write(bytes(4096))


def _workers(parts: Parts) -> str | None:
    with parts.database.read() as session:
        alive = gauges.workers(session, parts.settings.dead_after_seconds)
    return None if alive.get(False) else "no worker is alive that takes work: jobs wait"


_CHECKS: Final[dict[str, Callable[[Parts], str | None]]] = {
    "database": _database,
    "durable engine": _engine,
    "content store": _blobs,
    "spool folder": _spool,
}
