"""Self-checks and kernels: what was proved on which device, and what of it counts now."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from ninfer_core.compute import Operation
from ninfer_core.formats import FORMATS
from ninfer_core.kernels.registry import KERNELS
from ninfer_core.kernels.sources import DeviceClass
from ninfer_core.selfcheck.result import KernelOutcome, Level, Outcome
from service import evidence, selfchecks
from service.api.parameters import DIGEST, CallerParam, Paging, PartsParam, SelfCheckId
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.selfchecks import (
    KernelRead,
    KernelsRead,
    SelfCheckRead,
    SelfCheckWhole,
)
from service.errors import Fault, InvalidRequest, SelfCheckNotFound
from service.records.selfchecks import Wanted

router = APIRouter(prefix="/v1", tags=["selfchecks"])
_NAME = r"^[A-Za-z0-9_]{1,40}$"
_MAX_AGE = 2**31
_AGE = "No evidence that is older."


class SelfCheckPaging(Paging):
    """Self-checks by their device, and by what one of their results says."""

    device_class: DeviceClass | None = None
    device: str | None = Field(None, pattern=r"^(cpu|cuda:[0-9]{1,3})$")
    level: Level | None = None
    outcome: Outcome | None = Field(None, description="Of the whole self-check.")
    kernel: str | None = Field(None, max_length=100, description="Name of a kernel that was checked.")
    format: str | None = Field(None, pattern=_NAME, description="Of the same kernel.")
    operation: Operation | None = Field(None, description="Of the same kernel.")
    key: str | None = Field(None, pattern=DIGEST, description="Of the same kernel's evidence.")
    result: KernelOutcome | None = Field(None, description="What came of the same kernel.")
    max_age_seconds: int | None = Field(None, ge=0, le=_MAX_AGE, description=_AGE)
    current: bool = Field(
        False,
        description="Only those whose wanted evidence stands: kernel and device are still those, and no later check "
        "of the device has replaced it.",
    )


class KernelQuery(BaseModel):
    """Kernels, and how recent and thorough their evidence has to be."""

    model_config = ConfigDict(extra="forbid")

    device_class: DeviceClass | None = None
    kernel: str | None = Field(None, max_length=100)
    format: str | None = Field(None, pattern=_NAME)
    operation: Operation | None = None
    level: Level | None = None
    max_age_seconds: int | None = Field(None, ge=0, le=_MAX_AGE, description=_AGE)


def _require_known(query: SelfCheckPaging | KernelQuery) -> None:
    """Nothing is found of a name that nobody knows, and that would read like something not proved yet."""
    for member, name, known in (("kernel", query.kernel, KERNELS), ("format", query.format, FORMATS)):
        if name is not None and name not in known:
            message = f"no {member} that is registered: GET /v1/{member}s lists them"
            raise InvalidRequest(f"No such {member}: {name}.", Fault("query", member, message))


@router.get("/selfchecks", summary="Self-checks, newest first", responses=describe(InvalidRequest))
def page(
    parts: PartsParam, caller: CallerParam, query: Annotated[SelfCheckPaging, Query()]
) -> PageOf[SelfCheckRead]:
    """What was checked on which device. With `current` it answers whether an operation is proved now."""
    query.within(parts)
    _require_known(query)
    wanted = Wanted(
        **query.model_dump(exclude={"limit", "cursor", "max_age_seconds", "current"}),
    )
    found = selfchecks.page(
        parts,
        caller.project_id,
        limit=query.limit,
        cursor=query.cursor,
        wanted=wanted,
        max_age_seconds=query.max_age_seconds,
        current=query.current,
    )
    return PageOf(items=[SelfCheckRead.of(view) for view in found.items], next=found.next)


@router.get(
    "/selfchecks/{selfcheck}",
    summary="A self-check",
    responses=describe(SelfCheckNotFound, InvalidRequest),
)
def one(selfcheck: SelfCheckId, parts: PartsParam, caller: CallerParam) -> SelfCheckWhole:
    """With what it found of every kernel, as `ninfer-gate selfcheck --json` writes it."""
    return SelfCheckWhole.whole(selfchecks.one(parts, caller.project_id, selfcheck))


@router.get("/kernels", summary="The whitelist of kernels", responses=describe(InvalidRequest))
def kernels(parts: PartsParam, caller: CallerParam, query: Annotated[KernelQuery, Query()]) -> KernelsRead:
    """With what stands of each on every device that was checked; what is not listed here is refused everywhere."""
    _require_known(query)
    wanted = Wanted(**query.model_dump(exclude={"max_age_seconds"}))
    with parts.database.read() as session:
        found = evidence.kernels(session, caller.project_id, wanted, query.max_age_seconds)
        return KernelsRead(items=[KernelRead.of(kernel, stands) for kernel, stands in found])
