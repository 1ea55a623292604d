"""Self-checks of devices, and the whitelist of kernels with what stands of each."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.sources import DeviceClass
from ninfer_core.selfcheck.result import SCHEMA, KernelOutcome, Level, Outcome
from service.api.schemas.base import Answer, Digest, Id
from service.api.schemas.terms import JobSent
from service.evidence import Evidence
from service.selfchecks import (
    AUTO,
    DEVICES,
    Check,
    SelfCheckView,
    device_json,
    result_json,
)


class SelfCheckSent(JobSent):
    """Check a device of the worker that takes the job."""

    type: Literal["selfcheck"]
    device: str = Field(
        AUTO,
        pattern=f"^{DEVICES}$",
        description="`auto` is the one that the worker uses, else `cpu` or `cuda:N`.",
    )
    level: Level = "full"
    seed: int = Field(0, ge=0, le=2**63 - 1, description="Of the random values.")

    def request(self) -> Check:
        """As the use case takes it."""
        return Check(self.device, self.level, self.seed)


class DeviceRead(Answer):
    """A device as it was when it was checked; members without a value do not apply."""

    name: str = Field(description="As its machine calls it: `cpu`, `cuda:0`.")
    device_class: DeviceClass
    model: str
    capability: str = Field(description="Code path of a processor, compute capability of a GPU.")
    driver: str | None
    runtime: str | None
    compiler: str
    simulated: bool = Field(description="A simulator, which proves nothing about a GPU.")


class CountsRead(Answer):
    """How many kernels came out how."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    not_checked: int = 0


class SelfCheckRead(Answer):
    """One self-check; it never changes."""

    id: Id
    job: Id | None = Field(description="Null for the one that a worker made as it started.")
    worker: str
    level: Level
    seed: int
    outcome: Outcome
    device: DeviceRead
    counts: CountsRead
    created_at: datetime
    links: dict[str, str]

    @classmethod
    def of(cls, view: SelfCheckView) -> Self:
        """A self-check."""
        return cls.model_validate(_head(view))


class Mismatch(Answer):
    """The first value that is not what it should be."""

    case: str
    where: str
    expected: str
    found: str
    why: str | None = Field(
        default=None, description="What the case is there for, where a known answer says so."
    )


class KernelResult(Answer):
    """What was found of one kernel."""

    kernel: str
    operation: str
    format: str
    layout: str
    dtype: str | None
    regime: str
    compute_profile: str
    compute_profile_digest: Digest
    kernel_digest: Digest
    key: Digest = Field(description="Of everything that could change its answers.")
    outcome: KernelOutcome
    reason: str | None
    cases: int
    values: int
    mismatches: int
    first_mismatch: Mismatch | None
    runs: int
    equal_runs: int
    bytes_per_second: float | None
    copy_ratio: float | None = Field(description="Of its throughput to that of a copy on the device.")
    current: bool = Field(description="Kernel and device are still those that were checked.")


class SelfCheckWhole(SelfCheckRead):
    """A self-check with the document `ninfer-gate/selfcheck/1`: its `software` and `kernels`."""

    schema_: str = Field(SCHEMA, alias="schema")
    software: dict[str, Any]
    kernels: list[KernelResult]

    @classmethod
    def whole(cls, view: SelfCheckView) -> Self:
        """With its results."""
        kernels = [{**result_json(row), "current": row.ordinal in view.current} for row in view.results]
        return cls.model_validate({**_head(view), "software": view.check.software, "kernels": kernels})


class EvidenceRead(Answer):
    """What stands of a kernel on one device."""

    selfcheck: Id
    device: DeviceRead
    level: Level
    checked_at: datetime
    current: bool = Field(description="Kernel and device are still those that were checked.")
    key: Digest
    outcome: KernelOutcome
    reason: str | None
    mismatches: int
    bytes_per_second: float | None
    copy_ratio: float | None

    @classmethod
    def of(cls, item: Evidence) -> Self:
        """A result."""
        row = item.result
        members = ("key", "outcome", "reason", "mismatches", "bytes_per_second", "copy_ratio")
        return cls.model_validate(
            {
                "selfcheck": item.check.id,
                "device": device_json(item.check),
                "level": item.check.level,
                "checked_at": item.check.created_at,
                "current": item.current,
                **{name: getattr(row, name) for name in members},
            }
        )


class RegimeRead(Answer):
    """The shapes that a kernel takes."""

    name: str
    meaning: str


class KernelRead(Answer):
    """One row of the whitelist, with what stands of it on every device that was checked."""

    name: str
    operation: str
    format: str
    layout: str
    dtype: str | None = Field(description="Of the words beside the stored ones.")
    regime: RegimeRead
    compute_profile: str
    compute_profile_digest: Digest
    device_class: DeviceClass
    digest: Digest
    evidence: list[EvidenceRead]

    @classmethod
    def of(cls, kernel: Kernel, evidence: list[Evidence]) -> Self:
        """A kernel."""
        return cls.model_validate(
            {
                "name": kernel.name,
                "operation": kernel.operation,
                "format": kernel.format.name,
                "layout": kernel.layout.name,
                "dtype": kernel.dtype,
                "regime": {"name": kernel.regime.name, "meaning": kernel.regime.meaning},
                "compute_profile": kernel.profile.name,
                "compute_profile_digest": kernel.profile.digest,
                "device_class": kernel.device_class,
                "digest": kernel.digest,
                "evidence": [EvidenceRead.of(item) for item in evidence],
            }
        )


class KernelsRead(Answer):
    """The whole whitelist, or what was asked for of it."""

    items: list[KernelRead]


def _head(view: SelfCheckView) -> dict[str, Any]:
    check = view.check
    links = {"self": f"/v1/selfchecks/{check.id}"}
    if check.job_id is not None:
        links["job"] = f"/v1/jobs/{check.job_id}"
    members = ("id", "worker", "level", "seed", "outcome", "created_at")
    return {
        **{name: getattr(check, name) for name in members},
        "job": check.job_id,
        "device": device_json(check),
        "counts": dict(view.counts),
        "links": links,
    }
