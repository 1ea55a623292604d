"""What a self-check found, as values and as the document `ninfer-gate/selfcheck/1`."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from ninfer_core.identity import canonical_digest
from ninfer_core.kernels.devices import Device
from ninfer_core.kernels.registry import Kernel

SCHEMA: Final = "ninfer-gate/selfcheck/1"
Level = Literal["quick", "full"]
KernelOutcome = Literal["passed", "failed", "error", "not_checked"]
Outcome = Literal["passed", "failed", "incomplete"]


@dataclass(frozen=True, slots=True)
class FirstMismatch:
    """The first answer that was not the expected one."""

    case: str
    where: str
    expected: str
    found: str
    why: str | None = None  # what a known answer is there for


@dataclass(frozen=True, slots=True)
class KernelResult:
    """What was found of one kernel; `reason` says why it was not checked, or what went wrong instead of an answer.

    `cases` were put, and `values` numbers compared. The largest case was put `runs` times, `equal_runs` of which
    gave the same bits as the first. `copy_ratio` is the throughput over the device's own copy rate.
    """

    kernel: Kernel
    outcome: KernelOutcome
    reason: str | None = None
    cases: int = 0
    values: int = 0
    mismatches: int = 0
    first_mismatch: FirstMismatch | None = None
    runs: int = 0
    equal_runs: int = 0
    bytes_per_second: float | None = None
    copy_ratio: float | None = None

    def as_json(self, device: Device) -> dict[str, Any]:
        """JSON values, with the key of this evidence."""
        kernel = self.kernel
        first = None if self.first_mismatch is None else asdict(self.first_mismatch)
        return {
            "kernel": kernel.name,
            "operation": kernel.operation,
            "format": kernel.format.name,
            "layout": kernel.layout.name,
            "dtype": kernel.dtype,
            "regime": kernel.regime.name,
            "compute_profile": kernel.profile.name,
            "compute_profile_digest": kernel.profile.digest,
            "kernel_digest": kernel.digest,
            "key": evidence_key(kernel, device),
            "outcome": self.outcome,
            "reason": self.reason,
            "cases": self.cases,
            "values": self.values,
            "mismatches": self.mismatches,
            "first_mismatch": first,
            "runs": self.runs,
            "equal_runs": self.equal_runs,
            "bytes_per_second": self.bytes_per_second,
            "copy_ratio": self.copy_ratio,
        }


def evidence_key(kernel: Kernel, device: Device) -> str:
    """The digest of all that could change a kernel's answers: evidence under another key says nothing of this one."""
    return canonical_digest(
        {
            "kernel": kernel.digest,
            "format": kernel.format.name,
            "layout": kernel.layout.name,
            "operation": kernel.operation,
            "compute_profile": kernel.profile.digest,
            "device": {
                "model": device.model,
                "capability": device.capability,
                "driver": device.driver,
                "runtime": device.runtime,
                "compiler": device.compiler,
                "simulated": device.simulated,
            },
        }
    )


def outcome_of(kernels: tuple[KernelResult, ...]) -> Outcome:
    """Failed when some kernel gave a wrong answer or none; passed when every kernel, at least one, was checked."""
    outcomes = {result.outcome for result in kernels}
    if outcomes & {"failed", "error"}:
        return "failed"
    return "passed" if outcomes == {"passed"} else "incomplete"


@dataclass(frozen=True, slots=True)
class NotOffered:
    """What foreign kernels do not do: names of all, of those that were required, and unknown names of formats."""

    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """The kernels of one device, asked at one level."""

    level: Level
    seed: int
    device: Device
    software: dict[str, str]
    kernels: tuple[KernelResult, ...]
    absent: NotOffered | None = None  # of foreign kernels alone

    @property
    def outcome(self) -> Outcome:
        """See `outcome_of`; without a kernel that was required it is no pass."""
        outcome = outcome_of(self.kernels)
        missing = self.absent is not None and self.absent.missing
        return "incomplete" if missing and outcome == "passed" else outcome

    def as_json(self) -> dict[str, Any]:
        """The document; members of foreign kernels are there for these alone."""
        absent = self.absent
        return {
            "schema": SCHEMA,
            "level": self.level,
            "seed": self.seed,
            "outcome": self.outcome,
            "device": self.device.as_json(),
            "software": self.software,
            "kernels": [result.as_json(self.device) for result in self.kernels],
            **(
                {}
                if absent is None
                else {
                    "not_offered": [*absent.names],
                    "missing": [*absent.missing],
                    "unknown_formats": [*absent.unknown],
                }
            ),
        }
