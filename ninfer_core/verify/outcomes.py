"""What a task can yield, and the same as strict JSON: an outcome may be merged later, by another process.

Floats travel as hexadecimal text and come back to the last bit. What a task leaves empty is left out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, TypeVar

import numpy as np

from ninfer_core.errors import CannotRead, CutShort, LeadsOutside, OutOfStep
from ninfer_core.findings import Finding, Findings
from ninfer_core.identity import FileDigest
from ninfer_core.kernels.processor import Produced, merge_produced, nothing_ran, produced_json
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, WordStatistics
from ninfer_core.layouts.base import Block
from ninfer_core.verify.faults import Fault

Statistics = CodeStatistics | WordStatistics
Unread = CutShort | CannotRead


@dataclass(slots=True)
class Part:
    """What one task found out about one object of a `.ninfer` artifact."""

    sha256: str | None = None
    faults: list[Fault] = field(default_factory=list)
    statistics: list[tuple[Block, Statistics]] = field(default_factory=list)
    sums: list[ErrorSums] = field(default_factory=list)
    compared: bool = True  # parity reached its end in every block of this part
    error: Unread | None = None
    source_error: Unread | None = None  # the artifact's own words were read all the same
    kernels: Produced = field(default_factory=nothing_ran)  # that ran for it


@dataclass(frozen=True, slots=True)
class Digested:
    """One file, and the objects in it that were digested as the file was read, in the order of the task."""

    file: FileDigest | Unread
    objects: tuple[str | Unread, ...]  # hex sha256


@dataclass(slots=True)
class Scan:
    """One tensor of a safetensors file, read to its end; its digest may have come with that of the file."""

    sha256: str | None
    statistics: WordStatistics | None = None
    faults: list[Fault] = field(default_factory=list)
    kernels: Produced = field(default_factory=nothing_ran)


@dataclass(slots=True)
class Encoded:
    """One block, or one resource, of a conversion; a block with faults or without its source was not written."""

    faults: list[Fault] = field(default_factory=list)
    rescued: int = 0
    clamped: int = 0
    cut: CutShort | None = None
    kernels: Produced = field(default_factory=nothing_ran)


Outcome = Part | Scan | Encoded | FileDigest | Digested | Findings | CutShort | CannotRead
Kind = TypeVar("Kind")


class Outcomes:
    """Outcomes in the order of their tasks, each taken once and as what its task yields."""

    def __init__(self, outcomes: Iterable[object]) -> None:
        self._outcomes: Iterator[object] = iter(outcomes)

    def take(self, *kinds: type[Kind]) -> Kind:
        """The next one. Raises: OutOfStep when it is of no such kind, or there is none."""
        outcome = next(self._outcomes, None)
        if isinstance(outcome, kinds):
            return outcome
        raise OutOfStep(f"expected a {kinds[0].__name__}, got a {type(outcome).__name__}")

    def end(self) -> None:
        """Raises: OutOfStep when an outcome is left over."""
        if (outcome := next(self._outcomes, None)) is not None:
            raise OutOfStep(f"a {type(outcome).__name__} is left over")


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Strict JSON values that `from_json` makes the same outcome of."""
    members: dict[str, Any]
    match outcome:
        case Part():
            members = {
                "kind": "part",
                "sha256": outcome.sha256,
                "faults": _faults_json(outcome.faults),
                "statistics": [[*astuple(block), _statistics_json(one)] for block, one in outcome.statistics],
                "sums": [one.as_json() for one in outcome.sums],
                "not_compared": not outcome.compared,
                "error": outcome.error and to_json(outcome.error),
                "source_error": outcome.source_error and to_json(outcome.source_error),
                "kernels": produced_json(outcome.kernels),
            }
        case Scan():
            statistics = outcome.statistics and _statistics_json(outcome.statistics)
            members = {
                "kind": "scan",
                "sha256": outcome.sha256,
                "statistics": statistics,
                "faults": _faults_json(outcome.faults),
                "kernels": produced_json(outcome.kernels),
            }
        case Encoded():
            members = {
                "kind": "encoded",
                "faults": _faults_json(outcome.faults),
                "rescued": outcome.rescued,
                "clamped": outcome.clamped,
                "cut": outcome.cut and to_json(outcome.cut),
                "kernels": produced_json(outcome.kernels),
            }
        case FileDigest():
            members = {"kind": "file", "file": [outcome.name, outcome.bytes, outcome.sha256]}
        case Digested():
            digests = [one if isinstance(one, str) else to_json(one) for one in outcome.objects]
            members = {"kind": "digested", "file": to_json(outcome.file), "objects": digests}
        case Findings():
            members = {
                "kind": "findings",
                "items": [_finding_json(item) for item in outcome],
                "unlisted": dict(outcome.unlisted),
                "failed": sorted(outcome.failed),
            }
        case CutShort():
            place = [outcome.name, outcome.offset, outcome.wanted, outcome.got]
            members = {"kind": CutShort.code, "place": place}
        case CannotRead():
            # A source of the caller's may fail in its own way; the report only repeats its words.
            code = LeadsOutside.code if isinstance(outcome, LeadsOutside) else CannotRead.code
            members = {"kind": code, "message": str(outcome)}
    return {name: value for name, value in members.items() if value}


def from_json(document: Mapping[str, Any]) -> Outcome:
    """The outcome that `to_json` wrote. Raises: OutOfStep for a kind that is not known."""
    read = _READERS.get(document["kind"])
    if read is None:
        raise OutOfStep(f"{document['kind']!r} is no kind of outcome")
    return read(document)


def _part(document: Mapping[str, Any]) -> Part:
    error, source_error = document.get("error"), document.get("source_error")
    return Part(
        document.get("sha256"),
        _faults(document),
        [(Block(*block), _statistics(one)) for *block, one in document.get("statistics", ())],
        [ErrorSums.from_json(one) for one in document.get("sums", ())],
        not document.get("not_compared", False),
        error and _unread(error),
        source_error and _unread(source_error),
        _kernels(document),
    )


def _scan(document: Mapping[str, Any]) -> Scan:
    statistics = document.get("statistics")
    counted = statistics and WordStatistics(*statistics)
    return Scan(document.get("sha256"), counted, _faults(document), _kernels(document))


def _encoded(document: Mapping[str, Any]) -> Encoded:
    cut = document.get("cut")
    return Encoded(
        _faults(document),
        document.get("rescued", 0),
        document.get("clamped", 0),
        cut and _cut_short(cut),
        _kernels(document),
    )


def _digested(document: Mapping[str, Any]) -> Digested:
    file = from_json(document["file"])
    if not isinstance(file, FileDigest | Unread):
        raise OutOfStep(f"a {type(file).__name__} is no digest of a file")
    objects = document.get("objects", ())
    return Digested(file, tuple(one if isinstance(one, str) else _unread(one) for one in objects))


def _found(document: Mapping[str, Any]) -> Findings:
    listed = [Finding(**item) for item in document.get("items", ())]
    found = Findings()  # takes them over one by one, so that its own limits count on where they stopped
    found.extend(Findings(listed, Counter(document.get("unlisted", {})), set(document.get("failed", ()))))
    return found


def _cut_short(document: Mapping[str, Any]) -> CutShort:
    return CutShort(*document["place"])


def _unread(document: Mapping[str, Any]) -> Unread:
    outcome = from_json(document)
    if isinstance(outcome, Unread):
        return outcome
    raise OutOfStep(f"{document['kind']!r} is no reason why something was not read")


def _finding_json(item: Finding) -> dict[str, Any]:
    return {
        "code": item.code,
        "object": item.object,
        "where": dict(item.where),
        "expected": item.expected,
        "found": item.found,
        "message": item.message,
        "count": item.count,
        "about": item.about,
        "decided": item.decided,
    }


def _faults_json(faults: Iterable[Fault]) -> list[list[Any]]:
    return [[*_fault_json(fault)] for fault in faults]


def _fault_json(fault: Fault) -> Iterator[Any]:
    yield from (fault.code, fault.count, dict(fault.where), fault.expected, fault.found, fault.message)
    yield {name: list(values) for name, values in fault.samples.items()}
    yield fault.severity


def _faults(document: Mapping[str, Any]) -> list[Fault]:
    return [
        Fault(
            code,
            count,
            where,
            expected,
            found,
            message,
            {name: tuple(few) for name, few in samples.items()},
            severity,
        )
        for code, count, where, expected, found, message, samples, severity in document.get("faults", ())
    ]


def _statistics_json(statistics: Statistics) -> list[Any]:
    if isinstance(statistics, CodeStatistics):
        return [statistics.first_code, statistics.histogram.tolist(), statistics.tallies.tolist()]
    return [*astuple(statistics)]


def _statistics(members: list[Any]) -> Statistics:
    if isinstance(members[1], list):
        return CodeStatistics(members[0], *(np.array(counts, np.int64) for counts in members[1:]))
    return WordStatistics(*members)


def _kernels(document: Mapping[str, Any]) -> Produced:
    told = document.get("kernels", {})
    return merge_produced([{device: tuple(names) for device, names in told.items()}])


_READERS: dict[str, Callable[[Mapping[str, Any]], Outcome]] = {
    "part": _part,
    "scan": _scan,
    "encoded": _encoded,
    "file": lambda document: FileDigest(*document["file"]),
    "digested": _digested,
    "findings": _found,
    CutShort.code: _cut_short,
    CannotRead.code: lambda document: CannotRead(document.get("message", "")),
    LeadsOutside.code: lambda document: LeadsOutside(document.get("message", "")),
}
