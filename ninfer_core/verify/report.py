"""The report `ninfer-gate/report/1`: one value that the command line, the API and every later face are made from."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from ninfer_core import __version__
from ninfer_core.encoders import PROFILES
from ninfer_core.findings import Finding, Findings
from ninfer_core.identity import FileDigest, artifact_digest, content_root
from ninfer_core.layouts import RESOURCE_ENCODING
from ninfer_core.verify.checks import CHECKS, Asked, CheckName, Outcome, Verdict

SCHEMA = "ninfer-gate/report/1"
NOTHING_COMPARED: Final = "there is no object whose words can be derived or whose bound can be tried"

# How an object, or all objects of a check, were looked at; `partial` only of a check.
Extent = Literal["full", "sampled", "reused", "partial", "none"]


@dataclass(frozen=True, slots=True)
class Reused:
    """The run that a result was taken over from, and when that run ended (ISO 8601)."""

    run: str
    date: str


@dataclass(slots=True)
class ObjectResult:
    """What became of one object; `covered` are the checks that saw every byte or word they are about.

    `sampled` are those that saw a stated sample, and no fault in it.
    """

    ordinal: int
    name: str
    kind: str | None
    format: str | None
    layout: str | None
    shape: tuple[int, ...] | None
    offset: int | None
    bytes: int | None
    concerns: frozenset[CheckName] = frozenset()
    covered: frozenset[CheckName] = frozenset()
    sampled: frozenset[CheckName] = frozenset()
    reasons: Mapping[CheckName, str] = field(default_factory=dict)  # check -> why it is not covered
    sha256: str | None = None
    identity: str | None = None
    evidence: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    failed: bool = False
    reused: Reused | None = None

    @property
    def coverage(self) -> Extent:
        """`reused` claims nothing about the bytes of today."""
        if self.concerns <= self.covered:
            return "full" if self.reused is None else "reused"
        return "sampled" if self.concerns <= self.covered | self.sampled else "none"

    @property
    def outcome(self) -> Outcome:
        """`failed` wins; what was asked and not checked has not passed."""
        if self.failed:
            return "failed"
        return "not_checked" if self.coverage == "none" else "passed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check over the whole artifact; `objects` and `bytes` are what it covered."""

    name: CheckName
    outcome: Outcome
    coverage: Extent
    objects: int
    bytes: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """One verification of one artifact."""

    kind: str
    revision: int | None
    model_id: str | None
    weights_id: str | None
    name: str | None
    files: tuple[FileDigest, ...]  # those that could be read to their end
    complete: bool  # whether that is every file of the artifact
    objects: tuple[ObjectResult, ...]
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    unlisted: Mapping[str, int]  # code -> findings beyond those that are listed
    verdict: Verdict
    recipe: Mapping[str, Any] | None = None
    target: Mapping[str, Any] | None = None
    sample: Mapping[str, Any] | None = None
    stored: int | None = None  # bytes of all files, where none of them was to be digested

    @property
    def digest(self) -> str | None:
        """The artifact's digest; None when a file is missing or could not be read to its end."""
        return artifact_digest(self.kind, self.files) if self.complete else None

    @property
    def content_root(self) -> str | None:
        """Merkle root over the objects; None unless every one has an identity."""
        pairs = [(item.name, item.identity) for item in self.objects if item.identity is not None]
        return content_root(pairs) if pairs and len(pairs) == len(self.objects) else None

    @property
    def bytes(self) -> int:
        """Of all files."""
        return self.stored if self.stored is not None else sum(file.bytes for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """The report as strict JSON values."""
        return {
            **self._head(),
            "objects": [_object_json(item) for item in self.objects],
            "findings": [finding_json(finding) for finding in self.findings],
            **self._tail(),
        }

    def json_pieces(self) -> Iterator[str]:
        """The same document as text, piece by piece: half a million objects are never in memory twice."""
        yield json.dumps(self._head(), allow_nan=False)[:-1] + ', "objects": ['
        yield from _joined(_object_json(item) for item in self.objects)
        yield '], "findings": ['
        yield from _joined(finding_json(finding) for finding in self.findings)
        yield "], " + json.dumps(self._tail(), allow_nan=False)[1:]

    def _tail(self) -> dict[str, Any]:
        return {"unlisted_findings": dict(self.unlisted), "versions": versions()}

    def _head(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "artifact": {
                "kind": self.kind,
                "revision": self.revision,
                "identity": {"model_id": self.model_id, "weights_id": self.weights_id},
                "name": self.name,
                "digest": self.digest,
                "content_root": self.content_root,
                "bytes": self.bytes,
                "files": [
                    {"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in self.files
                ],
            },
            "recipe": self.recipe,
            "target": self.target,
            "sample": self.sample,
            "checks": [
                {
                    "name": check.name,
                    "outcome": check.outcome,
                    "coverage": check.coverage,
                    "objects": check.objects,
                    "bytes": check.bytes,
                    "reason": check.reason,
                }
                for check in self.checks
            ],
            "coverage": coverage(self.objects),
        }


def _joined(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    separator = ""
    for document in documents:
        yield separator + json.dumps(document, allow_nan=False)
        separator = ", "


def versions() -> dict[str, Any]:
    """Versions of the implementation and of every encoder profile it holds."""
    return {
        "ninfer_gate": __version__,
        "encoder_profiles": {profile.name: profile.version for profile in PROFILES},
    }


def coverage(objects: Sequence[ObjectResult]) -> dict[str, dict[str, int]]:
    """Objects and bytes by how they were checked."""
    extents: tuple[Extent, ...] = ("full", "sampled", "reused", "none")
    counts: dict[str, dict[str, int]] = {unit: dict.fromkeys(extents, 0) for unit in ("objects", "bytes")}
    for item in objects:
        counts["objects"][item.coverage] += 1
        counts["bytes"][item.coverage] += item.bytes or 0
    return {unit: {**by, "total": sum(by.values())} for unit, by in counts.items()}


# In this order: where the faults of recipes and sources count, should the better check not be asked.
_ABOUT_SOURCES: tuple[CheckName, ...] = ("source", "parity", "restrictions", "relations")


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding as strict JSON values."""
    return {
        "code": finding.code,
        "rule": finding.definition.rule,
        "severity": finding.severity,
        "check": finding.check,
        "about": finding.about,
        "object": finding.object,
        "where": dict(finding.where),
        "expected": finding.expected,
        "found": finding.found,
        "count": finding.count,
        "message": finding.message,
    }


def conclude(
    asked: Asked,
    objects: Sequence[ObjectResult],
    findings: Findings,
    skipped: Mapping[CheckName, str],
    idle: Mapping[CheckName, str] = MappingProxyType({}),
) -> tuple[tuple[CheckResult, ...], Verdict]:
    """Outcome of every check and the verdict.

    `skipped` says why a whole check could not run, `idle` why there is nothing that it could be about: then it counts as
    not asked, for a check that sees nothing has not passed.
    """
    # Faults of a recipe or a source leave nothing to compare with: they fail the check about them, and no other.
    about = next((name for name in _ABOUT_SOURCES if name in asked), "structure")
    failing = {finding.check if finding.about == "artifact" else about for finding in findings.errors}
    results = tuple(_check(name, asked, objects, failing, skipped, idle) for name in CHECKS)
    if findings.errors:
        return results, "failed"
    unchecked = any(result.outcome == "not_checked" for result in results)
    whole = all(item.coverage != "none" for item in objects)
    return results, "incomplete" if unchecked or not whole else "passed"


def _check(
    name: CheckName,
    asked: Asked,
    objects: Sequence[ObjectResult],
    failing: set[str],
    skipped: Mapping[CheckName, str],
    idle: Mapping[CheckName, str],
) -> CheckResult:
    if name not in asked or (name in idle and name not in failing):
        return CheckResult(name, "not_asked", "none", 0, 0, idle.get(name) if name in asked else None)
    concerned = [item for item in objects if name in item.concerns]
    seen = [item for item in concerned if name in item.covered or name in item.sampled]
    if name == "parity" and not concerned:
        skipped = {"parity": NOTHING_COMPARED, **skipped}
    complete = len(seen) == len(concerned) and name not in skipped
    reason = skipped.get(name) or next(
        (item.reasons[name] for item in concerned if name in item.reasons), None
    )
    if not complete and reason is None:
        reason = f"{len(concerned) - len(seen)} of {len(concerned)} objects could not be read"
    outcome: Outcome = "failed" if name in failing else "passed" if complete else "not_checked"
    extent = _extent(name, seen) if complete else "partial" if seen else "none"
    return CheckResult(name, outcome, extent, len(seen), _bytes(seen), None if complete else reason)


def _extent(name: CheckName, objects: Sequence[ObjectResult]) -> Extent:
    """Of a check that saw all it is about; the weakest of its objects says how."""
    if any(name not in item.covered for item in objects):
        return "sampled"
    return "reused" if any(item.reused is not None for item in objects) else "full"


def _bytes(objects: Iterable[ObjectResult]) -> int:
    return sum(item.bytes or 0 for item in objects)


def _object_json(item: ObjectResult) -> dict[str, Any]:
    return {
        "ordinal": item.ordinal,
        "name": item.name,
        "kind": item.kind,
        "format": item.format,
        "layout": item.layout,
        "encoding": RESOURCE_ENCODING if item.kind == "resource" else None,
        "shape": None if item.shape is None else list(item.shape),
        "offset": item.offset,
        "bytes": item.bytes,
        "sha256": item.sha256,
        "identity": item.identity,
        "outcome": item.outcome,
        "coverage": item.coverage,
        "reused_from": None if item.reused is None else {"run": item.reused.run, "date": item.reused.date},
        "evidence": item.evidence,
        "metrics": item.metrics,
    }
