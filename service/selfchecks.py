"""Self-checks: asked for, stored, looked at, and what of them counts now.

Evidence is the outcome of one kernel on one device. It is current while the kernel is that of this version and some
machine still has the device just so. A failure stands until a check of at least the same level has passed.
"""

import hashlib
import json
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal

from sqlalchemy.orm import Session

from ninfer_core.kernels.registry import KERNELS, Kernel
from service.errors import SelfCheckNotFound
from service.parts import Parts
from service.records import selfchecks
from service.records.models import SelfCheck, SelfCheckResult
from service.records.pages import Page
from service.records.selfchecks import ANY, Wanted
from service.records.types import name_key, now

Level = Literal["quick", "full"]
DeviceClass = Literal["cpu", "cuda"]
ResultOutcome = Literal["passed", "failed", "error", "not_checked"]
SCHEMA: Final = "ninfer-gate/selfcheck/1"
AUTO: Final = "auto"  # whatever device the worker uses that takes the job
ANSWERED: Final = ("passed", "failed", "incomplete")  # states of a job that leaves a self-check behind
_DEVICE: Final = ("name", "device_class", "model", "capability", "driver", "runtime", "compiler", "simulated")
DEVICES: Final = r"(auto|cpu|cuda:[0-9]{1,3})"  # that a job may ask for
_DEVICES: Final = re.compile(DEVICES)
_WRONG: Final = ("failed", "error")


@dataclass(frozen=True, slots=True)
class Check:
    """Check a device of the worker that takes the job: `auto` is the one it uses, else `cpu` or `cuda:N`."""

    type: ClassVar[Literal["selfcheck"]] = "selfcheck"
    device: str = AUTO
    level: Level = "full"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What stands of one kernel on one device; `current` says whether kernel and device are still those."""

    result: SelfCheckResult
    check: SelfCheck
    current: bool

    @property
    def passed(self) -> bool:
        """Whether anybody may rely on it now."""
        return self.current and self.result.outcome == "passed"


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


def device_key(device: Mapping[str, Any]) -> str:
    """Of everything that says what a device is, its name on the machine included."""
    facts = json.dumps([device[name] for name in _DEVICE], ensure_ascii=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


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
        created_at=now(),
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
    return dict(zip(_DEVICE, (*own, check.runtime, check.compiler, check.simulated), strict=True))


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
        wanted = replace(wanted, since=_since(max_age_seconds))
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
    digests = _digests() if check.device_key in selfchecks.devices_here(session, check.project_id) else {}
    current = frozenset(row.ordinal for row in results if digests.get(row.kernel) == row.kernel_digest)
    return SelfCheckView(check, counts, results, current)


def current_evidence(
    session: Session, project_id: str, wanted: Wanted = ANY, max_age_seconds: int | None = None
) -> list[Evidence]:
    """What counts now of kernels and devices as wanted, checked no longer ago than that; a gate asks this.

    An operation on a format is proved on a device class when all that is found here `passed`, and something is.
    """
    since = _since(max_age_seconds) or wanted.since
    return [
        item
        for item in standing(session, project_id, wanted)
        if item.current and (since is None or item.check.created_at >= since)
    ]


def standing(session: Session, project_id: str, wanted: Wanted = ANY) -> list[Evidence]:
    """The evidence that stands of each kernel on each device, the device that was checked last first.

    Of `wanted` all counts but the age; current or not is for the caller to tell.
    """
    checks = [
        check
        for check in selfchecks.latest(session, project_id, device_class=wanted.device_class)
        if wanted.level in (None, check.level) and wanted.device in (None, check.device)
    ]
    held = replace(wanted, result=None, key=None)
    results = selfchecks.results(session, [check.id for check in checks], held)
    here, digests = selfchecks.devices_here(session, project_id), _digests()
    by_kernel: dict[tuple[str, str], list[Evidence]] = {}
    for check in checks:
        for row in results[check.id]:
            current = check.device_key in here and digests.get(row.kernel) == row.kernel_digest
            by_kernel.setdefault((check.device_key, row.kernel), []).append(Evidence(row, check, current))
    chosen = (_standing(found) for found in by_kernel.values())
    return [
        item
        for item in chosen
        if wanted.outcome in (None, item.check.outcome)
        and wanted.result in (None, item.result.outcome)
        and wanted.key in (None, item.result.key)
    ]


def _standing(found: Sequence[Evidence]) -> Evidence:
    """Of the newest under each key at each level, newest first; what is no longer current counts where nothing is.

    A quick pass takes back no failure of a full check under the same key.
    """
    found = [item for item in found if item.current] or found
    newest = found[0]
    for other in found[1:]:
        if other.result.key != newest.result.key:
            continue
        unsaid = newest.result.outcome == "not_checked"
        if unsaid or (other.check.level == "full" and other.result.outcome in _WRONG):
            return other
    return newest


def refuted(session: Session, project_id: str, device: Mapping[str, Any]) -> Evidence | None:
    """Evidence that stands and speaks against a device as it is now; None when there is none."""
    key = device_key(device)
    digests = _digests()
    for check in selfchecks.latest(session, project_id, device_key=key):
        if check.level == "full":
            for row in selfchecks.results(session, [check.id])[check.id]:
                if row.outcome in _WRONG and digests.get(row.kernel) == row.kernel_digest:
                    return Evidence(row, check, True)
    return None


def kernels(
    session: Session, project_id: str, wanted: Wanted = ANY, max_age_seconds: int | None = None
) -> Iterator[tuple[Kernel, list[Evidence]]]:
    """The whitelist, with what stands of each kernel on every device that was checked."""
    since = _since(max_age_seconds)
    found: dict[str, list[Evidence]] = {}
    for item in standing(session, project_id, wanted):
        if since is None or item.check.created_at >= since:
            found.setdefault(item.result.kernel, []).append(item)
    for kernel in KERNELS:
        fits = (
            (wanted.device_class, kernel.device_class),
            (wanted.format, kernel.format.name),
            (wanted.operation, kernel.operation),
        )
        if all(asked in (None, own) for asked, own in fits):
            yield kernel, found.get(kernel.name, [])


def _digests() -> dict[str, str]:
    return {kernel.name: kernel.digest for kernel in KERNELS}


def _since(max_age_seconds: int | None) -> datetime | None:
    return None if max_age_seconds is None else now() - timedelta(seconds=max_age_seconds)
