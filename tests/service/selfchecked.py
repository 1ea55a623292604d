"""Documents of self-checks as the core writes them, of devices that need not be here."""

from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from typing import Any, Final

from sqlalchemy.orm import Session

from ninfer_core.identity import canonical_digest
from ninfer_core.kernels.registry import KERNELS, Kernel
from service import selfchecks
from service.records.models import DEFAULT_PROJECT, SelfCheck
from service.records.types import new_id, now

CPU: Final[dict[str, Any]] = {
    "name": "cpu",
    "device_class": "cpu",
    "model": "Some Processor @ 2.60GHz",
    "capability": "avx512 sapphirerapids",
    "driver": None,
    "runtime": None,
    "compiler": "numba 0.68.1, llvmlite 0.48.0, LLVM 20.1.8",
    "simulated": False,
}
GPU: Final[dict[str, Any]] = {
    "name": "cuda:0",
    "device_class": "cuda",
    "model": "Some GPU 141GB",
    "capability": "9.0",
    "driver": "580.95",
    "runtime": "13.0",
    "compiler": "numba 0.68.1, numba-cuda 0.30.4",
    "simulated": False,
}
MISMATCH: Final[dict[str, Any]] = {
    "case": "ties",
    "where": "row 3, group 1, lane 17",
    "expected": "code -3",
    "found": "code -2",
    "why": "reciprocal_differs_from_division",
}


_NUMBERS = count()


def key(kernel: Kernel, device: Mapping[str, Any], digest: str | None = None) -> str:
    """Some digest that changes with whatever the key is of."""
    facts = {name: value for name, value in device.items() if name not in ("name", "simulated")}
    return canonical_digest({"kernel": digest or kernel.digest, "device": facts})


def document(
    device: Mapping[str, Any] = CPU,
    level: str = "full",
    *,
    failed: tuple[str, ...] = (),
    errors: tuple[str, ...] = (),
    unchecked: tuple[str, ...] = (),
    digest: str | None = None,
) -> dict[str, Any]:
    """What is found of every kernel of the device's class; `digest` is one that its kernels had before."""
    kernels = []
    for number, kernel in enumerate(one for one in KERNELS if one.device_class == device["device_class"]):
        outcome, reason = "passed", None
        if kernel.name in failed:
            outcome = "failed"
        elif kernel.name in errors:
            outcome, reason = "error", "ValueError: planes of 3 groups"
        elif kernel.name in unchecked:
            outcome, reason = "not_checked", "there is too little memory for 2**31 elements"
        wrong = outcome == "failed"
        kernels.append(
            {
                "kernel": kernel.name,
                "operation": kernel.operation,
                "format": kernel.format.name,
                "layout": kernel.layout.name,
                "dtype": kernel.dtype,
                "regime": kernel.regime.name,
                "compute_profile": kernel.profile.name,
                "compute_profile_digest": kernel.profile.digest,
                "kernel_digest": digest or kernel.digest,
                "key": key(kernel, device, digest),
                "outcome": outcome,
                "reason": reason,
                "cases": 40,
                "values": 1_048_576,
                "mismatches": 12 if wrong else 0,
                "first_mismatch": MISMATCH if wrong else None,
                "runs": 8,
                "equal_runs": 8,
                "bytes_per_second": 9.5e9 + number * 1e8 if outcome == "passed" else None,
                "copy_ratio": 0.71 if outcome == "passed" else None,
            }
        )
    outcome = "failed" if failed or errors else "incomplete" if unchecked else "passed"
    return {
        "schema": "ninfer-gate/selfcheck/1",
        "level": level,
        "seed": 0,
        "outcome": outcome,
        "device": dict(device),
        "software": {"ninfer_gate": "0", "numba": "0.68.1"},
        "kernels": kernels,
    }


def stored(
    session: Session,
    found: Mapping[str, Any],
    *,
    id_: str | None = None,
    job_id: str | None = None,
    ago: timedelta = timedelta(0),
    project_id: str = DEFAULT_PROJECT,
) -> SelfCheck:
    """Stored, as so long ago."""
    # Ids of one millisecond have no order of their own.
    id_ = id_ or f"{new_id()[:12]}{next(_NUMBERS):020x}"
    row = selfchecks.save(session, found, project_id=project_id, id_=id_, worker="f" * 32, job_id=job_id)
    kept = session.get(SelfCheck, row.id)
    assert kept is not None
    kept.created_at = now() - ago
    session.flush()
    return kept
