"""Faults of stored words: counted over a whole tensor, placed once, merged block by block in order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ninfer_core.findings import Findings, Severity

MAX_SAMPLES = 16


@dataclass(frozen=True, slots=True)
class Fault:
    """All occurrences of one code in one tensor: the first one's place, the number, a few more places."""

    code: str
    count: int
    where: Mapping[str, Any]
    expected: str
    found: str
    message: str
    samples: Mapping[str, tuple[int, ...]] = field(
        default_factory=dict
    )  # member of `where` -> first few values
    severity: Severity | None = None  # where something else decides it than the code


def merge(faults: Iterable[Fault]) -> list[Fault]:
    """One fault a code and severity: counts added, the place of the first kept. Faults come in block order."""
    merged: dict[tuple[str, Severity | None], Fault] = {}
    for fault in faults:
        key = (fault.code, fault.severity)
        first = merged.get(key)
        if first is None:
            merged[key] = fault
            continue
        samples = {
            name: tuple(dict.fromkeys((*first.samples.get(name, ()), *values)))[:MAX_SAMPLES]
            for name, values in fault.samples.items()
        }
        merged[key] = replace(first, count=first.count + fault.count, samples=samples)
    return list(merged.values())


def report(
    faults: Iterable[Fault],
    name: str,
    findings: Findings,
    start: int | None = None,
    ordinal: int | None = None,
) -> None:
    """The merged faults of one object as findings; `start` is where the object begins in the logical file,
    `ordinal` the object that an error fails."""
    for fault in merge(faults):
        times = f" ({fault.count:,} in all, first shown)" if fault.count > 1 else ""
        where = {**fault.where, **{member: list(values) for member, values in fault.samples.items()}}
        if start is not None and "byte" in where:
            where["offset"] = start + where["byte"]
        findings.add(
            fault.code,
            fault.message + times,
            object=name,
            where=where,
            expected=fault.expected,
            found=fault.found,
            count=fault.count,
            ordinal=ordinal,
            severity=fault.severity,
        )
