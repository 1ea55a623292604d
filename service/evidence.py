"""What self-checks prove now: the outcome of one kernel on one device, as long as both are what they were.

Evidence is current while the kernel is that of this version and some machine still has the device just so. A failure
stands until a check of at least the same level has passed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy.orm import Session

from ninfer_core.kernels.registry import KERNELS, Kernel
from service.records import selfchecks
from service.records.database import moment
from service.records.models import SelfCheck, SelfCheckResult
from service.records.selfchecks import ANY, Wanted
from service.records.types import name_key

DEVICE: Final = ("name", "device_class", "model", "capability", "driver", "runtime", "compiler", "simulated")
WRONG: Final = ("failed", "error")


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


def device_key(device: Mapping[str, Any]) -> str:
    """Of everything that says what a device is, its name on the machine included."""
    return name_key(json.dumps([device[name] for name in DEVICE], ensure_ascii=True))


def current_evidence(
    session: Session, project_id: str, wanted: Wanted = ANY, max_age_seconds: int | None = None
) -> list[Evidence]:
    """What counts now of kernels and devices as wanted, checked no longer ago than that; a gate asks this.

    An operation on a format is proved on a device class when all that is found here `passed`, and something is.
    """
    since = since_age(session, max_age_seconds) or wanted.since
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
    here, digests = selfchecks.devices_here(session, project_id), digests_now()
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
    """Of some of one kernel on one device, newest first; what is no longer current counts where nothing is.

    The newest that says anything, under its key. A quick pass takes back no failure of a full check.
    """
    found = [item for item in found if item.current] or found
    found = [item for item in found if item.result.key == found[0].result.key]
    said = [item for item in found if item.result.outcome != "not_checked"]
    if not said:
        return found[0]
    full = next((item for item in said if item.check.level == "full"), None)
    return full if full is not None and full.result.outcome in WRONG else said[0]


def refuted(session: Session, project_id: str, device: Mapping[str, Any]) -> Evidence | None:
    """Evidence of a full check that stands and speaks against a device as it is now; None when there is none."""
    digests = digests_now()
    heard: set[str] = set()  # kernels of which a newer check has said something
    for check in selfchecks.latest(session, project_id, device_key=device_key(device)):
        for row in selfchecks.results(session, [check.id])[check.id] if check.level == "full" else ():
            if row.outcome == "not_checked" or digests.get(row.kernel) != row.kernel_digest:
                continue
            if row.outcome in WRONG and row.kernel not in heard:
                return Evidence(row, check, True)
            heard.add(row.kernel)
    return None


def kernels(
    session: Session, project_id: str, wanted: Wanted = ANY, max_age_seconds: int | None = None
) -> Iterator[tuple[Kernel, list[Evidence]]]:
    """The whitelist, with what stands of each kernel on every device that was checked."""
    since = since_age(session, max_age_seconds)
    found: dict[str, list[Evidence]] = {}
    for item in standing(session, project_id, wanted):
        if since is None or item.check.created_at >= since:
            found.setdefault(item.result.kernel, []).append(item)
    for kernel in KERNELS:
        fits = (
            (wanted.device_class, kernel.device_class),
            (wanted.kernel, kernel.name),
            (wanted.format, kernel.format.name),
            (wanted.operation, kernel.operation),
        )
        if all(asked in (None, own) for asked, own in fits):
            yield kernel, found.get(kernel.name, [])


@cache  # kernels are what they were when this process began
def digests_now() -> dict[str, str]:
    """Of every kernel, by its name."""
    return {kernel.name: kernel.digest for kernel in KERNELS}


def since_age(session: Session, max_age_seconds: int | None) -> datetime | None:
    """The moment that long ago, by the clock that stamped the evidence."""
    return None if max_age_seconds is None else moment(session) - timedelta(seconds=max_age_seconds)
