"""Self-checks: asked for, stored and looked at; `service.evidence` says what of them counts now."""

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from sqlalchemy.orm import Session

from ninfer_core.selfcheck.result import SCHEMA, Level
from service.errors import SelfCheckNotFound
from service.evidence import DEVICE, current_evidence, device_key, digests_now, since_age
from service.parts import Parts
from service.records import selfchecks
from service.records.database import moment
from service.records.models import SelfCheck, SelfCheckResult
from service.records.pages import Page
from service.records.selfchecks import Wanted
from service.records.types import name_key

AUTO: Final = "auto"  # whatever device the worker uses that takes the job
ANSWERED: Final = ("passed", "failed", "incomplete")  # states of a job that leaves a self-check behind
DEVICES: Final = r"(auto|cpu|cuda:[0-9]{1,3})"  # that a job may ask for
_DEVICES: Final = re.compile(DEVICES)


@dataclass(frozen=True, slots=True)
class Check:
    """Check a device of the worker that takes the job: `auto` is the one it uses, else `cpu` or `cuda:N`."""

    type: ClassVar[Literal["selfcheck"]] = "selfcheck"
    device: str = AUTO
    level: Level = "full"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SelfCheckView:
    """A self-check with its results, or, in lists, with how many came out how; `current` is by their ordinals."""

    check: SelfCheck
    counts: Mapping[str, int]
    results: Sequence[SelfCheckResult] = ()
    current: frozenset[int] = frozenset()


def is_device(name: str) -> bool:
    """Whether a job may ask for it."""
    return _DEVICES.fullmatch(name) is not None


def settled(request: Check) -> dict[str, Any]:
    """The request as the workflow reads it."""
    return {"type": request.type, "device": request.device, "level": request.level, "seed": request.seed}


def machine() -> str:
    """What tells this machine from others in the rows of self-checks, without naming it."""
    return name_key(socket.gethostname())


def save(
    session: Session,
    document: Mapping[str, Any],
    *,
    project_id: str,
    id_: str,
    worker: str,
    job_id: str | None,
) -> SelfCheck:
    """Store a document `ninfer-gate/selfcheck/1`; with `id_` stored before, what is there stands."""
    device = document["device"]
    row = SelfCheck(
        id=id_,
        project_id=project_id,
        job_id=job_id,
        worker=worker,
        machine=machine(),
        level=document["level"],
        seed=document["seed"],
        outcome=document["outcome"],
        device=device["name"],
        device_class=device["device_class"],
        device_model=device["model"],
        capability=device["capability"],
        driver=device["driver"],
        runtime=device["runtime"],
        compiler=device["compiler"],
        simulated=device["simulated"],
        device_key=device_key(device),
        kernels_key=name_key(" ".join(sorted(item["kernel_digest"] for item in document["kernels"]))),
        software=dict(document["software"]),
        created_at=moment(session),
    )
    results = [
        SelfCheckResult(ordinal=ordinal, **{name: item[name] for name in _RESULT})
        for ordinal, item in enumerate(document["kernels"])
    ]
    selfchecks.save(session, row, results)
    if job_id is None:
        selfchecks.thin_out(session, project_id, row.device_key)
    return row


def device_json(check: SelfCheck) -> dict[str, Any]:
    """The device as the document says it."""
    own = (check.device, check.device_class, check.device_model, check.capability, check.driver)
    return dict(zip(DEVICE, (*own, check.runtime, check.compiler, check.simulated), strict=True))


def result_json(row: SelfCheckResult) -> dict[str, Any]:
    """A result as the document lists it."""
    return {name: getattr(row, name) for name in _RESULT}


_RESULT: Final = tuple(
    column.key
    for column in SelfCheckResult.__mapper__.columns
    if column.key not in ("self_check_id", "ordinal", "project_id")
)


def document(view: SelfCheckView) -> dict[str, Any]:
    """`ninfer-gate/selfcheck/1` again, out of its rows."""
    check = view.check
    return {
        "schema": SCHEMA,
        "level": check.level,
        "seed": check.seed,
        "outcome": check.outcome,
        "device": device_json(check),
        "software": check.software,
        "kernels": [result_json(row) for row in view.results],
    }


def page(
    parts: Parts,
    project_id: str,
    *,
    limit: int,
    cursor: str | None,
    wanted: Wanted,
    max_age_seconds: int | None = None,
    current: bool = False,
) -> Page[SelfCheckView]:
    """Newest first; with `current` only those that hold wanted evidence which counts now. Raises: BadCursor."""
    with parts.database.read() as session:
        wanted = replace(wanted, since=since_age(session, max_age_seconds))
        if current:
            found = current_evidence(session, project_id, wanted)
            wanted = replace(wanted, ids={item.check.id for item in found})
        listed = selfchecks.page(session, project_id, limit=limit, cursor=cursor, wanted=wanted)
        counts = selfchecks.counts(session, [row.id for row in listed.items])
    return Page([SelfCheckView(row, counts[row.id]) for row in listed.items], listed.next)


def one(parts: Parts, project_id: str, id_: str) -> SelfCheckView:
    """Raises: SelfCheckNotFound."""
    with parts.database.read() as session:
        check = selfchecks.get(session, project_id, id_)
        if check is None:
            raise SelfCheckNotFound(f"This project holds no self-check {id_}.")
        return viewed(session, check)


def viewed(session: Session, check: SelfCheck) -> SelfCheckView:
    """A self-check with its results."""
    results = selfchecks.results(session, [check.id])[check.id]
    counts: dict[str, int] = {}
    for row in results:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    digests = digests_now() if check.device_key in selfchecks.devices_here(session, check.project_id) else {}
    current = frozenset(row.ordinal for row in results if digests.get(row.kernel) == row.kernel_digest)
    return SelfCheckView(check, counts, results, current)
