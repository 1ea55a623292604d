"""The document `ninfer-gate/comparison/1`: of two artifacts what is the same, what changed, and by how much."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ninfer_core.compare import SCHEMA
from ninfer_core.compare.facts import Facts
from ninfer_core.containers.directory import ArtifactObject, BrokenObject, ResourceObject, TensorObject
from ninfer_core.findings import FINDINGS, Finding
from ninfer_core.identity import FileDigest, artifact_digest
from ninfer_core.layouts import RESOURCE_ENCODING
from ninfer_core.verify.report import finding_json, versions

Status = Literal["identical", "re-packed", "re-encoded", "changed", "added", "removed", "unreadable"]
Verdict = Literal["identical", "different", "incomplete"]
STATUSES: dict[Status, str] = {
    "unreadable": "a side could not be read, so nothing can be said",
    "removed": "only A has an object of this name",
    "added": "only B has an object of this name",
    "changed": "other words, another shape or another kind",
    "re-encoded": "another format, the same shape",
    "re-packed": "other bytes, yet every logical word is equal",
    "identical": "the same format, shape and payload",
}
RANKS: tuple[Status | Literal["unbounded", "moved"], ...] = (
    "unreadable",
    "removed",
    "added",
    "unbounded",  # changed or re-encoded, and nothing says by how much
    "changed",  # and re-encoded: by their error
    "moved",  # removed and added, with the same content under another name
    "re-packed",
    "identical",
)


def ranks(status: str) -> tuple[int, ...]:
    """The ranks that objects of a status may have."""
    names = {
        "changed": ("unbounded", "changed"),
        "re-encoded": ("unbounded", "changed"),
        "removed": ("removed", "moved"),
        "added": ("added", "moved"),
    }
    return tuple(index for index, rank in enumerate(RANKS) if rank in names.get(status, (status,)))


@dataclass(slots=True)
class ObjectComparison:
    """What became of one pair; `ordinal` counts pairs: A's directory first, then what only B has."""

    ordinal: int
    name: str
    status: Status
    a: ArtifactObject | None
    b: ArtifactObject | None
    a_sha256: str | None = None
    b_sha256: str | None = None
    a_identity: str | None = None
    b_identity: str | None = None
    same_content_as: str | None = None  # of an object that only one side has: its name on the other
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None

    @property
    def nmse(self) -> float | None:
        """Squared error of B over the squares of A."""
        found: float | None = self.metrics.get("nmse")
        return found

    @property
    def rank(self) -> int:
        """Place among `RANKS`; the smallest is the worst."""
        if self.status in ("changed", "re-encoded"):
            return RANKS.index("unbounded" if self.nmse is None else "changed")
        if self.same_content_as is not None:
            return RANKS.index("moved")
        return RANKS.index(self.status)

    @property
    def weight(self) -> float:
        """What orders objects of one rank, the largest first."""
        return self.nmse or 0.0

    @property
    def bytes(self) -> int:
        """Of B's payload; of A's where B has none."""
        item = self.b if self.b is not None else self.a
        return (item.bytes or 0) if item is not None else 0

    def as_json(self) -> dict[str, Any]:
        """Its entry in the document."""
        return {
            "ordinal": self.ordinal,
            "name": self.name,
            "status": self.status,
            "a": _side_json(self.a, self.a_sha256, self.a_identity),
            "b": _side_json(self.b, self.b_sha256, self.b_identity),
            "same_content_as": self.same_content_as,
            "metrics": dict(self.metrics),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Compares:
    """One of the two artifacts."""

    kind: str
    revision: int | None
    model_id: str | None
    weights_id: str | None
    name: str | None
    files: tuple[FileDigest, ...]
    complete: bool  # whether that is every file, read to its end
    listed: bool  # whether its list of objects could be read
    content_root: str | None
    findings: tuple[Finding, ...]
    unlisted: Mapping[str, int]

    @property
    def digest(self) -> str | None:
        """The artifact's digest; None when a file is missing or could not be read to its end."""
        return artifact_digest(self.kind, self.files) if self.complete else None

    @property
    def errors(self) -> int:
        """Errors of its structure, those beyond the listed ones included."""
        listed = sum(finding.severity == "error" for finding in self.findings)
        return listed + sum(n for code, n in self.unlisted.items() if FINDINGS[code].severity == "error")

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """Its heading in the document."""
        return {
            "kind": self.kind,
            "revision": self.revision,
            "identity": {"model_id": self.model_id, "weights_id": self.weights_id},
            "name": self.name,
            "digest": self.digest,
            "content_root": self.content_root,
            "bytes": self.bytes,
            "files": [{"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in self.files],
            "errors": self.errors,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of two artifacts; `objects` are in the order of the pairs."""

    a: Compares
    b: Compares
    objects: tuple[ObjectComparison, ...]
    facts: Facts

    @property
    def verdict(self) -> Verdict:
        """`different` as soon as one object is, or a fact of the directories that decides.

        `incomplete` when none is and something could not be read.
        """
        statuses = {item.status for item in self.objects}
        if statuses - {"identical", "unreadable"} or self.facts.deciding:
            return "different"
        whole = self.a.listed and self.b.listed and "unreadable" not in statuses
        return "identical" if whole else "incomplete"

    def worst(self) -> list[ObjectComparison]:
        """The objects, the worst first."""
        return sorted(self.objects, key=lambda item: (item.rank, -item.weight, item.ordinal))

    def head_json(self) -> dict[str, Any]:
        """The document without its objects and findings."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "a": self.a.as_json(),
            "b": self.b.as_json(),
            "totals": totals(self.objects),
            "facts": [fact.as_json() for fact in self.facts.listed],
            "unlisted_facts": self.facts.unlisted,
            "unlisted_findings": {"a": dict(self.a.unlisted), "b": dict(self.b.unlisted)},
            "versions": versions(),
        }

    def findings_json(self) -> Iterator[dict[str, Any]]:
        """The findings of both, A's first; `side` says whose."""
        for side, whole in (("a", self.a), ("b", self.b)):
            for finding in whole.findings:
                yield {"side": side, **finding_json(finding)}

    def as_json(self) -> dict[str, Any]:
        """The document as strict JSON values."""
        return {
            **self.head_json(),
            "objects": [item.as_json() for item in self.objects],
            "findings": list(self.findings_json()),
        }

    def json_pieces(self) -> Iterator[str]:
        """The same document as text, piece by piece: half a million objects are never in memory twice."""
        yield from json_pieces(
            self.head_json(), (item.as_json() for item in self.objects), self.findings_json()
        )


def json_pieces(
    head: Mapping[str, Any], objects: Iterable[Mapping[str, Any]], findings: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """A document out of its parts, piece by piece."""
    yield json.dumps(head, allow_nan=False)[:-1] + ', "objects": ['
    yield from _joined(objects)
    yield '], "findings": ['
    yield from _joined(findings)
    yield "]}"


def totals(objects: Sequence[ObjectComparison]) -> dict[str, dict[str, int]]:
    """Objects, and bytes of either side, by status."""
    count: Counter[str] = Counter(dict.fromkeys(STATUSES, 0))
    a_bytes, b_bytes = Counter(count), Counter(count)
    for item in objects:
        count[item.status] += 1
        a_bytes[item.status] += (item.a.bytes or 0) if item.a is not None else 0
        b_bytes[item.status] += (item.b.bytes or 0) if item.b is not None else 0
    return {"objects": dict(count), "a_bytes": dict(a_bytes), "b_bytes": dict(b_bytes)}


def _joined(documents: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    separator = ""
    for document in documents:
        yield separator + json.dumps(document, allow_nan=False)
        separator = ", "


def _side_json(
    item: ArtifactObject | None, sha256: str | None, identity: str | None
) -> dict[str, Any] | None:
    if item is None:
        return None
    return {
        "ordinal": item.ordinal,
        **_what(item),
        "offset": item.offset,
        "bytes": item.bytes,
        "sha256": sha256,
        "identity": identity,
    }


def _what(item: ArtifactObject) -> dict[str, Any]:
    kind, format_name, layout, encoding, shape = None, None, None, None, None
    match item:
        case TensorObject():
            kind, format_name, layout, shape = "tensor", item.format.name, item.layout.name, item.shape
        case ResourceObject():
            kind, encoding = "resource", item.encoding
        case BrokenObject():
            kind, format_name, layout, shape = item.kind, item.format, item.layout, item.shape
            encoding = RESOURCE_ENCODING if item.kind == "resource" else None
    return {
        "kind": kind,
        "format": format_name,
        "layout": layout,
        "encoding": encoding,
        "shape": None if shape is None else list(shape),
    }
